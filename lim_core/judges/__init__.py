"""Judges of answers: `contains` for everyday use, `liu` to reproduce published figures."""

from lim_core.judges.answer_judges import best_subspan_em, check_answers, contains, judge_version, judges, liu

__all__ = ["best_subspan_em", "check_answers", "contains", "judge_version", "judges", "liu"]
