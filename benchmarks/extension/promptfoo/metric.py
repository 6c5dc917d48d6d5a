from local import politeness


def get_assert(output: str, context: dict) -> dict:
    score = politeness(output)
    return {"pass": score >= 0.5, "score": score, "reason": "polite words"}
