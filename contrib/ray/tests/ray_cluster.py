"""A Ray cluster of two nodes with a CPU each, and the resource ``sandbox`` at the second; the first process of the tests' namespace; commands come as JSON lines.

``{"add": N}`` starts a node, ``{"kill": N}`` kills it with its processes, ``{"run": [COMMAND], "cwd": FOLDER, "env": {}}`` starts a process and answers
its pid in the namespace, ``{"signal": [PID, NUMBER]}`` sends it a signal, ``{"wait": PID}`` answers ``[code, output, errors]``. All processes of the
namespace end with this one, when its input ends.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from itertools import count
from queue import SimpleQueue
from threading import Thread

# Ray reads them when it is imported
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_prestart_worker_first_driver": "0",
    # A busy machine: workers have niceness 15 by default, and get no CPU; a node is lost after seconds; full memory ends workers.
    "RAY_worker_niceness": "0",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "600",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_memory_monitor_refresh_ms": "0",
}

from ray._private import ray_constants, services
from ray.cluster_utils import Cluster

WAIT_SECONDS = 600
"""Seconds that a process may take: 20 times as long as on a machine without other work."""

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
HEAD = NODE | {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""Without the processes of the first node that the tests do not use."""


PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
FIRST_PORT, LAST_PORT, MOST_PORTS = 11_000, 31_000, 1_000
"""Bounds of the agents' ports, and the number of ports for each cluster of the network namespace."""

_get_node = services.get_node


def get_node(*arguments):
    """Return the description of a node; wait until a busy machine has started it, for which Ray has 30 seconds."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return _get_node(*arguments)
        except RuntimeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


services.get_node = get_node

_start_process = services.start_ray_process


def start_process(command, process_type, *arguments, **options):
    """Start a process of Ray; pass the raylet the port that Ray passes to its agent alone."""
    if process_type == ray_constants.PROCESS_TYPE_RAYLET:
        port = re.search(r"--listen-port=(\d+)", " ".join(command))[1]
        command = [*command, f"--dashboard_agent_listen_port={port}"]
    return _start_process(command, process_type, *arguments, **options)


services.start_ray_process = start_process


def read(requests):
    """Pass the requests on, and end the namespace with the input, also while a process is waited for."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def lock_ports():
    """Return a socket at a port before the ports of this cluster. No other cluster of the network namespace has them."""
    for first in range(FIRST_PORT, LAST_PORT, MOST_PORTS):
        try:
            return socket.create_server(("127.0.0.1", first))
        except OSError:
            continue
    raise OSError(f"all ports from {FIRST_PORT} to {LAST_PORT} are in use: end the other clusters")


def main():
    """Start the cluster, print its address, and carry out commands."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = SimpleQueue()
    Thread(target=read, args=(requests,), daemon=True).start()
    starts = count()

    lock = lock_ports()

    def ports():
        """Return ports of a node's agents. A raylet waits 15 seconds for a port that the agent selects, and ends then."""
        first = lock.getsockname()[1] + 1 + len(PORTS) * next(starts)
        return {name: first + place for place, name in enumerate(PORTS)}

    cluster = Cluster(initialize_head=True, head_node_args=HEAD | ports())
    nodes, processes = {}, {}

    def add(number):
        nodes[number] = cluster.add_node(**NODE, **ports(), resources={"sandbox": 2})

    def kill(number):
        cluster.remove_node(nodes.pop(number), allow_graceful=False)

    def run(command, cwd, env):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=cwd, env=os.environ | env, text=True, **streams)
        processes[process.pid] = process
        return process.pid

    def wait(pid):
        process = processes.pop(pid)
        try:
            out, err = process.communicate(timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return [process.returncode, out, err]

    def signal(request):
        pid, number = request
        processes[pid].send_signal(number)

    def end(_):
        while processes:
            _, process = processes.popitem()
            process.kill()
            process.communicate()

    add(2)
    print(json.dumps(cluster.address), file=answers, flush=True)
    while True:
        request = requests.get()
        if "run" in request:
            answer = run(request["run"], request["cwd"], request["env"])
        else:
            (name, value), *_ = request.items()
            answer = {"add": add, "kill": kill, "signal": signal, "wait": wait, "end": end}[name](value)
        print(json.dumps(answer), file=answers, flush=True)


main()
