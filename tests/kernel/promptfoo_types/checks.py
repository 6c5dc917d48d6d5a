from __future__ import annotations


def get_assert(output, context):
    return {"pass": output == context["vars"]["out"], "score": 1.0, "reason": "the same"}


def graded(output, context):
    return {"pass": True, "score": 0.6, "reason": "so so"}
