#!/usr/bin/env python3
r"""Writes tests/metrics/sacrebleu_fixture.json: what sacreBLEU answers on text that is hard to get
right.

    python3 tests/reference/metrics_fixture.py PATH_TO_SACREBLEU \
        > tests/metrics/sacrebleu_fixture.json

PATH_TO_SACREBLEU is a checkout of github.com/mjpost/sacrebleu (made with v2.6.0; Python 3.11,
regex 2022.10.31). The text is invented here. Signatures come without their version.
"""

import json
import logging
import random
import sys
import types

sys.path.insert(0, sys.argv[1])
version = types.ModuleType("sacrebleu.version")  # a checkout has none until it is packaged
version.__version__ = "unknown"
sys.modules["sacrebleu.version"] = version

from sacrebleu.metrics import BLEU, CHRF, TER  # noqa: E402
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a  # noqa: E402
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar  # noqa: E402
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International  # noqa: E402
from sacrebleu.tokenizers.tokenizer_none import NoneTokenizer  # noqa: E402
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer  # noqa: E402

TRICKY = [
    "Hello, world!",
    "It costs 1,234.56 euros (about $1,500.00).",
    "In 2017. In 1999, in 3.14, .5 and 5. and ,7 and 7,",
    "a well-known 12-year-old, 3-4 and -5 -- 6--7",
    "dots... and more.... ,,, .,. 1..2 1,,2 1.,2",
    "&quot;Quoted&quot; &amp;amp; &lt;b&gt; &amp;lt; &amp;quot; &apos;x&apos; & a&b",
    "before <skipped> after<skipped>",
    "'s dog's dogs' it's 's don't rock'n'roll",
    "the dog's, the cat's. &amp;amp;quot; x's",
    "a/b\\c [d] {e} (f) <g> |h| ~i~ `j` ^k^ _l_ @m #n $o %p *q+r=s",
    "“typographic” ‘quotes’ — dash – en‑dash … ellipsis «guillemets» „unten“",
    "¿Qué? ¡Sí! 50 % 20€ £5 5¢ ±3 §4 ©2020 №5 5° 10µm ½ ² Ⅷ",
    "中文字符，没有空格。第２句！「引号」１２，３４．５",
    "日本語のテキスト、句読点。カタカナ・テスト",
    "emoji 😀 👍🏽 👩‍👩‍👧 flags 🇩🇪 ♥ → ∑ ≤",
    "ÄÖÜẞ ß ÉÀ ΑΣ ΣΑΣ ΌΣΟΣ. İstanbul ΙI Ǆ ﬁ Ⅷ ДОМ ԱՐ Ꭰ",
    "no\u00a0break\u2003em\u3000ideographic\u2009thin\u200bzero\u0085next\u2028line",
    "\ttabs\t\tand   spaces  \x1c\x1f control \u001d",
    "trailing space \u00a0\u3000 ",
    "  leading",
    "العربية، سؤال؟ ١٢٣٫٤ ۱۲",
    "हिन्दी। देवनागरी १२.३",
    "e\u0301 combining n\u0303, 1\u0301.2 a\u0301.b",
    "",
    " ",
    ".",
    "-",
    "1",
    "x",
    "'",
    "5-",
    "a.",
    ".a",
    "1.",
    ".1",
    "http://example.org/path?x=1&y=2#z user@example.org 12:30 1/2",
]

CORPORA = {
    "prose": (
        [
            "The cat sat on the mat.",
            "There is a dog in the garden, and it barks.",
            "He bought 3 apples for 1.50 euros.",
            "the the the the the the the",
            "Nothing here matches",
            "On Monday the committee will publish its report (in English).",
        ],
        [
            [
                "The cat is sitting on the mat.",
                "A dog is barking in the garden.",
                "He bought three apples for 1.50 euros.",
                "The cat is on the mat.",
                "Completely different words",
                "The committee will publish its report on Monday, in English.",
            ],
            [
                "There is a cat on the mat.",
                "There is a dog in the garden and it is barking!",
                "For 1.50 euros, he bought 3 apples.",
                "There is a cat on the mat",
                "",
                "On Monday, its report will be published by the committee (in English).",
            ],
            [
                "the Cat Sat On the Mat .",
                "In the garden there is a dog; it barks.",
                "He paid 1,50 € for 3 apples.",
                "the",
                "Nothing matches",
                "Its report will the committee publish on Monday.",
            ],
        ],
    ),
    "empty hypotheses": (
        ["", "a b c d e", "", "one two"],
        [["something here", "a b c d e f", "", "one two three"]],
    ),
    "all empty": (["", " "], [["", ""]]),
    "empty against text": (["", ""], [["some words", "and more"]]),
    "text against empty": (["some words", "and more"], [["", ""]]),
    "one word": (["yes", "No", "maybe"], [["yes", "no", "perhaps"]]),
    "no match": (["a b c d e"], [["f g h i j"]]),
    "two words": (["ab cd", "ef gh"], [["ab cd", "ef gx"]]),
    "longer": (["a b c d e f g h i j k l"], [["a b c d", ]]),
    "tricky": (TRICKY[1:] + TRICKY[:1], [TRICKY]),
    "tricky, nearly": (
        [" ".join(line.split()[:5][::-1] + line.split()[5:]).swapcase() for line in TRICKY],
        [TRICKY, [line.replace(",", "") for line in TRICKY]],
    ),
}


def shuffled_corpus():
    """Word lists with runs moved about, which is what TER's shifts are for."""
    rng = random.Random(7)
    words = "the a of to in is it on at by we he you they go come see big red old".split()
    hypotheses, references = [], []
    for segment in range(60):
        size = rng.choice([1, 2, 5, 10, 20, 30] + [110] * (segment % 20 == 19))
        alphabet = words[: rng.choice([3, 8, 20])]
        reference = [rng.choice(alphabet) for _ in range(size)]
        hypothesis = list(reference)
        for _ in range(rng.randrange(4)):
            start, length = rng.randrange(size), rng.randrange(1, 13)
            run = hypothesis[start : start + length]
            del hypothesis[start : start + length]
            target = rng.randrange(len(hypothesis) + 1)
            hypothesis[target:target] = run
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(hypothesis) + 1)
            hypothesis[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(3))
        hypotheses.append(" ".join(hypothesis))
        references.append(" ".join(reference))
    # Lengths so different that the beam must widen, and so many repeats that the limit on shift
    # candidates is reached.
    hypotheses += ["a b", "a b a b a b a b a b a b a b a b a b a b x"]
    references += [" ".join(["a b c"] * 60), "b a b b a a b a b b a b a a b a b a b b a y"]
    return hypotheses, [references]


CORPORA["shuffled"] = shuffled_corpus()

BLEU_OPTIONS = [
    {"tokenize": tokenize, "lowercase": lowercase}
    for tokenize in ("13a", "intl", "char", "none")
    for lowercase in (False, True)
] + [
    {"smooth_method": method, "smooth_value": value, "effective_order": effective_order}
    for method, value in [
        ("none", None),
        ("floor", None),
        ("floor", 0.01),
        ("floor", 0.0),
        ("add-k", None),
        ("add-k", 2.5),
        ("exp", None),
    ]
    for effective_order in (False, True)
]
CHRF_OPTIONS = [
    {"char_order": 6, "word_order": 0},
    {"char_order": 6, "word_order": 2},
    {"char_order": 6, "word_order": 1, "lowercase": True},
    {"char_order": 4, "word_order": 2, "beta": 1, "whitespace": True},
    {"char_order": 6, "word_order": 0, "beta": 3, "eps_smoothing": True},
    {"char_order": 6, "word_order": 2, "eps_smoothing": True},
    {"char_order": 0, "word_order": 3},
]
TER_OPTIONS = [
    {},
    {"case_sensitive": True},
    {"normalized": True},
    {"no_punct": True},
    {"normalized": True, "no_punct": True, "case_sensitive": True},
]
logging.disable(logging.WARNING)  # sacreBLEU's advice on effective_order

METRICS = {"bleu": (BLEU, BLEU_OPTIONS), "chrf": (CHRF, CHRF_OPTIONS), "ter": (TER, TER_OPTIONS)}


def is_of_use(kind, options, corpus):
    """False where a corpus made for one option would only repeat another case."""
    if corpus == "shuffled":
        return kind == "ter"
    return not (corpus.startswith("tricky") and "smooth_method" in options)


def cases():
    for kind, (metric_type, all_options) in METRICS.items():
        for options in all_options:
            for name, (hypotheses, references) in CORPORA.items():
                if not is_of_use(kind, options, name):
                    continue
                for count in range(1, len(references) + 1):
                    metric = metric_type(**options)
                    corpus = metric.corpus_score(hypotheses, references[:count])
                    sentences = [
                        round(metric.sentence_score(hypothesis, list(translations)).score, 6)
                        for hypothesis, *translations in zip(hypotheses, *references[:count])
                    ]
                    signature = str(metric.get_signature()).rsplit("|version:", 1)[0]
                    yield {
                        "metric": kind,
                        "options": {k: v for k, v in options.items() if v is not None},
                        "corpus": name,
                        "references": count,
                        "line": corpus.format(width=8, signature=signature),
                        "sentences": sentences,
                    }


def tokenized():
    tokenizers = {
        "13a": Tokenizer13a(),
        "intl": TokenizerV14International(),
        "char": TokenizerChar(),
        "none": NoneTokenizer(),
        "ter": TercomTokenizer(),
        "ter normalized": TercomTokenizer(normalized=True),
        "ter no_punct": TercomTokenizer(no_punct=True),
        "ter case_sensitive": TercomTokenizer(case_sensitive=True),
    }
    for line in TRICKY:
        yield {"line": line, **{name: split(line).split() for name, split in tokenizers.items()}}


def dumps(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def main():
    fixture = {
        "corpora": {
            name: {"hypotheses": hypotheses, "references": references}
            for name, (hypotheses, references) in CORPORA.items()
        },
        "tokenized": list(tokenized()),
        "cases": list(cases()),
    }
    lines = ["{"]
    for key, value in fixture.items():
        if isinstance(value, dict):
            rows = [f"{dumps(k)}: {dumps(v)}" for k, v in value.items()]
        else:
            rows = [dumps(row) for row in value]
        brackets = "{}" if isinstance(value, dict) else "[]"
        lines.append(f'"{key}": {brackets[0]}\n' + ",\n".join(rows) + f"\n{brackets[1]},")
    print("\n".join(lines)[:-1] + "\n}")


main()
