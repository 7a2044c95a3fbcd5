from ._answer import (
    METRIC, Answer, find_answer, verdict, sentences, MethodBeside, find_beside, beside_sentence, listed,
    permutation_means, null_verdict, null_sentences, in_front, strongest_by_place,
)
from ._first_screen import (
    quality_words, TestedPeople, count_tested, poison_sentences, NUMERALS, Fact, FirstScreen, Situation, first_screen,
    question,
)

__all__ = [
    "METRIC", "Answer", "find_answer", "verdict", "sentences", "MethodBeside", "find_beside", "beside_sentence",
    "listed", "permutation_means", "null_verdict", "null_sentences", "in_front", "strongest_by_place",
    "quality_words", "TestedPeople", "count_tested", "poison_sentences", "NUMERALS", "Fact", "FirstScreen", "Situation",
    "first_screen", "question",
]
