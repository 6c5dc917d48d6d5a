from dataclasses import dataclass

from local import politeness
from pydantic_evals.evaluators import Evaluator, EvaluatorContext


@dataclass
class Polite(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> float:
        return politeness(ctx.output)
