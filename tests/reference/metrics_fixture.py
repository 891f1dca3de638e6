#!/usr/bin/env python3
r"""Writes what sacreBLEU answers on text that is hard to get right, and the small SentencePiece
model that it cuts some of it with, into a folder: sacrebleu_fixture.json, significance_fixture.json
and pieces.model.

    python3 -O tests/reference/metrics_fixture.py PATH_TO_SACREBLEU tests/metrics

PATH_TO_SACREBLEU is a checkout of github.com/mjpost/sacrebleu (made with v2.6.0; Python 3.11; of
Debian 12 python3-regex, python3-numpy 1.24.2, python3-sentencepiece 0.1.97, python3-mecab 0.996 and
mecab-ipadic-utf8). -O because sacreBLEU asserts the size of MeCab's dictionary, of which Debian's
has one word more. The text is invented here. Signatures come without their version.
"""

import itertools
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import types

import sentencepiece

FOLDER = sys.argv[2]
MODELS = ["sacrebleu_tokenizer_spm.model", "flores200sacrebleuspm", "spbleu-1k_tokenizer_spm.model"]
os.environ["SACREBLEU"] = tempfile.mkdtemp()
os.environ.pop("SACREBLEU_SEED", None)

sys.path.insert(0, sys.argv[1])
version = types.ModuleType("sacrebleu.version")  # a checkout has none until it is packaged
version.__version__ = "unknown"
sys.modules["sacrebleu.version"] = version
ipadic = types.ModuleType("ipadic")
ipadic.MECAB_ARGS = "-r /dev/null -d /var/lib/mecab/dic/ipadic-utf8"
sys.modules["ipadic"] = ipadic

import numpy  # noqa: E402
import sacrebleu.significance as significance  # noqa: E402
from sacrebleu.metrics import BLEU, CHRF, TER  # noqa: E402
from sacrebleu.metrics.bleu import _get_tokenizer  # noqa: E402
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer  # noqa: E402
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh  # noqa: E402

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

# Scripts without spaces; ideographs of the rarer blocks; marks at the borders of sacreBLEU's ranges.
ASIAN = [
    "我们在2019年11月买了3.5公斤苹果。",
    "  你好，world！（测试）《书名》【注】  ",
    "「これは」テスト、です。すもももももももものうち!",
    "東京都は2020年に1,000人を迎えた。",
    "カタカナとひらがなと漢字、ｶﾅ・ﾃﾞｽ。",
    "平成31年4月30日まで、ＡＢＣ１２３",
    "한국어 문장입니다. 띄어쓰기가 있어요!",
    "㐀㒨䶵 龥龦龻鿿 豈鶴 﨎 ﹏︐ 〇〡 ㇀㇣ ⺀⼀⿰ ㄅㆠ ㈠㍿ ㏿ ☀✂ 㼢㼣",
    "𠀀𪛖 丽 … — “引号” → ∑ ①",
    "、。，．？！：；（）｡｢｣､･〈〉〔〕〖〟",
    "ひらがな",
    "カタカナ",
    "漢",
    "abc 漢字 def",
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
    "missing": (
        ["a b c d", "e f g h", "i j k l"],
        [["a b c d e", None, "i j k"], ["a b x d", "e f g x", None], [None, "e f", ""]],
    ),
    "asian": (ASIAN, [[line[:-1] + "。" for line in ASIAN], [line[::-1] for line in ASIAN]]),
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
    for tokenize in ("13a", "intl", "char", "zh", "ja-mecab", "none")
    for lowercase in (False, True)
] + [
    {"tokenize": tokenize} for tokenize in ("spm", "flores101", "flores200", "spBLEU-1K")
] + [
    {"max_ngram_order": order, "smooth_method": method}
    for order, method in [(1, "exp"), (2, "floor"), (3, "none"), (6, "exp"), (5, "add-k")]
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
    {"normalized": True, "asian_support": True},
    {"no_punct": True, "asian_support": True},
    {"normalized": True, "no_punct": True, "asian_support": True},
]
logging.disable(logging.WARNING)  # sacreBLEU's advice on effective_order

METRICS = {"bleu": (BLEU, BLEU_OPTIONS), "chrf": (CHRF, CHRF_OPTIONS), "ter": (TER, TER_OPTIONS)}


def is_of_use(kind, options, corpus):
    """False where a corpus made for one option would only repeat another case."""
    if corpus == "shuffled":
        return kind == "ter"
    if corpus == "asian":
        return options.get("tokenize") in ("zh", "ja-mecab", "spm", "char") or kind != "bleu"
    if options.get("tokenize") in ("flores101", "flores200", "spBLEU-1K", "ja-mecab"):
        return corpus == "prose"
    return not (corpus.startswith("tricky") and "smooth_method" in options)


def cases():
    for kind, (metric_type, all_options) in METRICS.items():
        for options in all_options:
            for name, (hypotheses, references) in CORPORA.items():
                if not is_of_use(kind, options, name):
                    continue
                first = len(references) if name == "missing" else 1
                for count in range(first, len(references) + 1):
                    metric = metric_type(**options)
                    corpus = metric.corpus_score(hypotheses, references[:count])
                    signature = str(metric.get_signature()).rsplit("|version:", 1)[0]
                    sentences = [
                        round(
                            metric.sentence_score(
                                hypothesis, [line for line in translations if line is not None]
                            ).score,
                            6,
                        )
                        for hypothesis, *translations in zip(hypotheses, *references[:count])
                    ]
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
        name: _get_tokenizer(name)()
        for name in ("13a", "intl", "char", "zh", "ja-mecab", "spm", "none")
    }
    tokenizers |= {
        "ter": TercomTokenizer(),
        "ter normalized": TercomTokenizer(normalized=True),
        "ter no_punct": TercomTokenizer(no_punct=True),
        "ter case_sensitive": TercomTokenizer(case_sensitive=True),
        "ter normalized asian_support": TercomTokenizer(normalized=True, asian_support=True),
        "ter no_punct asian_support": TercomTokenizer(no_punct=True, asian_support=True),
    }
    for line in TRICKY + ASIAN:
        yield {"line": line, **{name: split(line).split() for name, split in tokenizers.items()}}


def separated(tokenize):
    """The ranges of code points that a tokenizer sets apart from letters beside them."""
    apart = [
        code
        for code in itertools.chain(range(0x20, 0xD800), range(0xE000, 0x110000))
        if len(tokenize(f"a{chr(code)}a").split()) > 1 and not chr(code).isspace()
    ]
    known = set(apart)
    starts = [code for code in apart if code - 1 not in known]
    ends = [code for code in apart if code + 1 not in known]
    return list(zip(starts, ends))


def train_pieces():
    """Puts a model of our own where sacreBLEU keeps those that it downloads."""
    path = os.path.join(FOLDER, "pieces.model")
    text = [line for hypotheses, sets in CORPORA.values() for line in hypotheses + sets[0] if line]
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=file,
            vocab_size=700,
            model_type="unigram",
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            minloglevel=2,
        )
    os.makedirs(os.path.join(os.environ["SACREBLEU"], "models"))
    for name in MODELS:
        shutil.copy(path, os.path.join(os.environ["SACREBLEU"], "models", name))


def paired_corpus():
    """Three systems of different quality, and two references."""
    rng = random.Random(11)
    words = "the a of to in is it on at by we he you they go come see big red old tree".split()

    def spoiled(line, rate):
        kept = [rng.choice(words) if rng.random() < rate else word for word in line.split()]
        if rng.random() < rate:
            kept = kept[1:] + kept[:1]
        return " ".join(kept)

    first = [" ".join(rng.choices(words, k=rng.randrange(3, 16))) + "." for _ in range(120)]
    second = [spoiled(line, 0.2) for line in first]
    third = [spoiled(line, 0.3) for line in first]
    systems = [[spoiled(line, rate) for line in first] for rate in (0.30, 0.27, 0.15)]
    systems.append(list(systems[0]))  # a system beside itself
    return systems, [first, second, third]


def paired_cases(systems, references):
    metrics = [("bleu", BLEU, {}), ("chrf", CHRF, {}), ("chrf", CHRF, {"word_order": 2}),
               ("ter", TER, {})]
    for (kind, metric_type, options), test, samples, seed, count in itertools.product(
        metrics, ("bs", "ar"), (1, 300), (12345, 7), (1, 2, 3)
    ):
        os.environ["SACREBLEU_SEED"] = str(seed)
        paired = significance.PairedTest(
            [(f"system {i}", system) for i, system in enumerate(systems)],
            {kind: metric_type(**options)},
            references[:count],
            test_type=test,
            n_samples=samples,
        )
        signatures, scores = paired()
        (name, signature), = signatures.items()
        yield {
            "metric": kind,
            "options": options,
            "test": test,
            "samples": samples,
            "seed": seed,
            "references": count,
            "signature": str(signature).rsplit("|version:", 1)[0],
            "results": [
                {key: value if value is None else float(value)
                 for key, value in vars(result).items()}
                for result in scores[name]
            ],
        }


def confidence_cases(systems, references):
    os.environ["SACREBLEU_SEED"] = "12345"
    for metric in (BLEU(), CHRF(), CHRF(word_order=2), TER()):
        score = metric.corpus_score(systems[0], references[:1], n_bootstrap=1000)
        signature = str(metric.get_signature()).rsplit("|version:", 1)[0]
        yield {"line": score.format(width=3, signature=signature)}


def draws():
    for seed in (12345, 0, 1, 2**32 - 1, 2**32, 2**64 - 1):
        rng = numpy.random.default_rng(seed)
        yield {
            "seed": seed,
            "raw": [int(number) for number in rng.bit_generator.random_raw(3)],
            "choice 3004": rng.choice(3004, size=7).tolist(),
            "choice 1": rng.choice(1, size=2).tolist(),
            "choice 3000000000": rng.choice(3000000000, size=9).tolist(),
            "bits": rng.integers(2, size=70, dtype=bool).astype(int).tolist(),
            "choice 7": rng.choice(7, size=5).tolist(),
        }


def dumps(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def write(name, fixture):
    """A row of a list or an object a line, so that changes can be read."""
    lines = ["{"]
    for key, value in fixture.items():
        if isinstance(value, dict):
            rows = [f"{dumps(k)}: {dumps(v)}" for k, v in value.items()]
        else:
            rows = [dumps(row) for row in value]
        brackets = "{}" if isinstance(value, dict) else "[]"
        lines.append(f'"{key}": {brackets[0]}\n' + ",\n".join(rows) + f"\n{brackets[1]},")
    with open(os.path.join(FOLDER, name), "w") as file:
        file.write("\n".join(lines)[:-1] + "\n}\n")


def main():
    train_pieces()
    write(
        "sacrebleu_fixture.json",
        {
            "corpora": {
                name: {"hypotheses": hypotheses, "references": references}
                for name, (hypotheses, references) in CORPORA.items()
            },
            "tokenized": list(tokenized()),
            "separated by zh": separated(TokenizerZh().__call__),
            "separated by ter": separated(
                TercomTokenizer(normalized=True, asian_support=True).__call__
            ),
            "cases": list(cases()),
        },
    )
    systems, references = paired_corpus()
    write(
        "significance_fixture.json",
        {
            "draws": list(draws()),
            "corpus": {"systems": systems, "references": references},
            "paired": list(paired_cases(systems, references)),
            "confidence": list(confidence_cases(systems, references)),
        },
    )
    shutil.rmtree(os.environ["SACREBLEU"])


main()
