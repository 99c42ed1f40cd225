"""Formulas over a record's metrics, for figures whose parts are no metrics of their own:

    memory_bytes + heap.used_bytes - index_bytes
    checkpoints.bytes / checkpoints.complete

A term is the name of a metric, with dots for nested ones, or a quotient of two; terms are added and subtracted. A
metric that is null, or in an object that is null, counts as 0: the run had nothing of the kind. A missing metric and a
division by 0 leave no value. An empty text is 0.
"""
from __future__ import annotations

import re
from typing import Optional

from experiment.records import is_number, lookup

_NAME = r"[A-Za-z_][\w.]*"
_TERM = re.compile(rf"(?:(?P<sign>[+-]) )?(?P<name>{_NAME})(?: / (?P<divisor>{_NAME}))?")
_FORMULA = re.compile(rf"{_NAME}(?: / {_NAME})?(?: [+-] {_NAME}(?: / {_NAME})?)*")


class _NoValue(Exception):
    pass


def is_formula(text) -> bool:
    return isinstance(text, str) and _FORMULA.fullmatch(text) is not None


def evaluate(metrics: Optional[dict], text: str) -> Optional[float]:
    try:
        return 0.0 + sum((-1 if term["sign"] == "-" else 1) * _value_of(metrics, term) for term in _TERM.finditer(text))
    except _NoValue:
        return None


def _value_of(metrics: Optional[dict], term: re.Match) -> float:
    value = _number(metrics, term["name"])
    if value is None:
        return 0.0
    if not term["divisor"]:
        return value
    divisor = _number(metrics, term["divisor"])
    if not divisor:
        raise _NoValue
    return value / divisor


def _number(metrics: Optional[dict], name: str) -> Optional[float]:
    """None: it is null, or in what is null."""
    value = lookup(metrics, name, missing="no number")
    if value is not None and not is_number(value):
        raise _NoValue
    return value
