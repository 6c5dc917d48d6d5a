"""A Ray cluster of a head and two nodes with a CPU each, in this process's network namespace; commands come as JSON lines.

``{"add": N}`` starts a node, ``{"kill": N}`` kills it with its processes, ``{"run": [COMMAND], "cwd": FOLDER, "env": {}}`` starts a process and answers
its pid, ``{"wait": PID}`` answers ``[code, output, errors]``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from ray.cluster_utils import Cluster

MEMORY = 80 * 2**20


def main():
    """Start the cluster, print its address, and carry out commands."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    nodes, processes = {}, {}

    def add(number):
        nodes[number] = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)

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
            out, err = process.communicate(timeout=150)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return [process.returncode, out, err]

    def end(_):
        while processes:
            _, process = processes.popitem()
            process.kill()
            process.communicate()

    add(1)
    add(2)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(cluster.address), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "run" in request:
            answer = run(request["run"], request["cwd"], request["env"])
        else:
            (name, value), *_ = request.items()
            answer = {"add": add, "kill": kill, "wait": wait, "end": end}[name](value)
        print(json.dumps(answer), file=answers, flush=True)
    end(None)
    cluster.shutdown()


main()
