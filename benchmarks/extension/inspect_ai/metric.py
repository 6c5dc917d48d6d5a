from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState
from local import politeness


@scorer(metrics=[mean()])
def polite() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=politeness(state.output.completion))

    return score
