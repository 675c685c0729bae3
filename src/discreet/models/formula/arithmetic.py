"""Columns made of columns inside a formula: `I(x^2)`, `I(x > 0)`, `sqrt(x)`, `exp(x / 10)`, `days(date)`.

An expression is read into nested tuples, never evaluated as code: numbers, column names, `+ - * / ^`, comparisons that
`& | !` join, and the functions of `WITHIN`. It has R's spelling, which names its coefficient, and becomes an expression
of the frame's engine. As in R, a comparison is a factor with the levels FALSE and TRUE; where it is reckoned with, or
is the response, it is 0 or 1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.data.delimited import quoted
from discreet.data.frames import missing, open_frame
from discreet.words.errors import DataError, FormulaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from discreet.data.frames import AnyFrame
    from discreet.models.formula.formula import _Reader

MAKERS = ("I", "sqrt", "exp", "days")
"""Functions that make a column."""
WITHIN = ("log", "sqrt", "exp")
EPOCH = 719_163
"""The number of 1970-01-01, where 0001-01-01 has 1."""
DEEPEST = 20
LONGEST = 400
"""Names, numbers and signs of one expression, which nest as deep as there are signs."""
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LOGICAL = (*COMPARISONS, "&", "|", "!")
Node: TypeAlias = tuple[Any, ...]


def read(reader: _Reader, function: str) -> Node:
    """The rest of `function(`, up to and with its closing parenthesis."""
    start = reader.position
    inside: Node = ("column", reader.name()) if function == "days" else _either(reader, 0)
    if reader.position - start > LONGEST:
        reader.fail(f"{function}() holds more than {LONGEST} names, numbers and signs")
    reader.expect(")")
    return ("call", function, inside)


def _either(reader: _Reader, depth: int) -> Node:
    """R's precedence, loosest first: `| & !`, comparisons, `+ -`, `* /`, `^`."""
    left = _both(reader, depth)
    while reader.accept("|"):
        left = _joined(reader, "|", left, _both(reader, depth))
    return left


def _both(reader: _Reader, depth: int) -> Node:
    left = _comparison(reader, depth)
    while reader.accept("&"):
        left = _joined(reader, "&", left, _comparison(reader, depth))
    return left


def _comparison(reader: _Reader, depth: int) -> Node:
    _refuse_deep(reader, depth)
    if reader.accept("!"):
        return _joined(reader, "!", _comparison(reader, depth + 1))
    left = _sum(reader, depth)
    if operator := reader.accept(*COMPARISONS):
        left = (operator, left, _sum(reader, depth))
    return left


def _joined(reader: _Reader, operator: str, *parts: Node) -> Node:
    if not all(map(is_logical, parts)):
        reader.fail(f"{operator!r} is for comparisons, such as I(x > 0 & z < 2)")
    return (operator, *parts)


def _refuse_deep(reader: _Reader, depth: int) -> None:
    if depth > DEEPEST:
        reader.fail(f"parentheses and signs are nested more than {DEEPEST} deep")


def _sum(reader: _Reader, depth: int) -> Node:
    left = _product(reader, depth)
    while operator := reader.accept("+", "-"):
        left = (operator, left, _product(reader, depth))
    return left


def _product(reader: _Reader, depth: int) -> Node:
    left = _power(reader, depth)
    while operator := reader.accept("*", "/"):
        left = (operator, left, _power(reader, depth))
    return left


def _power(reader: _Reader, depth: int) -> Node:
    _refuse_deep(reader, depth)
    if reader.accept("-"):
        return ("negative", _power(reader, depth + 1))
    base = _atom(reader, depth)
    if reader.accept("^", "**"):
        return ("^", base, _power(reader, depth + 1))
    return base


def _atom(reader: _Reader, depth: int) -> Node:
    if reader.accept("("):
        inside = _either(reader, depth + 1)
        reader.expect(")")
        return ("group", inside)
    if re.match(r"\d", reader.token):
        return ("number", float(reader.take()))
    quoted = reader.token.startswith("`")
    name = reader.name()
    if quoted or not reader.accept("("):
        return ("column", name)
    if name not in WITHIN:
        reader.fail(f"function {name!r} is not allowed in I(); it knows {', '.join(WITHIN)}")
    inside = _either(reader, depth + 1)
    reader.expect(")")
    return ("call", name, inside)


def is_logical(node: Node) -> bool:
    """Whether an expression is true or false."""
    return is_logical(node[1]) if node[0] == "group" else node[0] in LOGICAL


def with_numbers(made: Mapping[str, Node], response: str) -> tuple[tuple[str, Node], ...]:
    """The expressions, of which the response is 0 or 1 where it would be the factor FALSE or TRUE."""
    return tuple((name, node[2] if name == response and _is_factor(node) else node) for name, node in made.items())


def _is_factor(node: Node) -> bool:
    return node[:2] == ("call", "I") and is_logical(node[2])


def spelled(node: Node) -> str:
    """R's spelling."""
    kind, *parts = node
    if kind == "column":
        return str(parts[0])
    if kind == "number":
        return f"{parts[0]:g}"
    if kind in ("negative", "!"):
        return f"{'-' if kind == 'negative' else kind}{spelled(parts[0])}"
    if kind == "group":
        return f"({spelled(parts[0])})"
    if kind == "call":
        return f"{parts[0]}({spelled(parts[1])})"
    between = kind if kind in "/^" else f" {kind} "
    return f"{spelled(parts[0])}{between}{spelled(parts[1])}"


def columns(node: Node) -> list[str]:
    """The columns that an expression reads."""
    if node[0] == "column":
        return [node[1]]
    return [name for part in node[1:] if isinstance(part, tuple) for name in columns(part)]


def _expression(node: Node) -> Any:
    """Numbers; what is true or false is 1 or 0, and missing where a side of a comparison is."""
    import narwhals.stable.v2 as nw

    kind, *parts = node
    if kind == "column":
        return nw.col(parts[0]).cast(nw.Float64())
    if kind == "number":
        return nw.lit(parts[0])
    if kind == "negative":
        return -_expression(parts[0])
    if kind == "group":
        return _expression(parts[0])
    if kind == "call":
        function, inside = parts
        if function == "days":
            return _days(nw.col(inside[1]).cast(nw.Datetime("us")).dt)
        value = _expression(inside)
        return {"I": lambda: value, "sqrt": lambda: value**0.5, "exp": value.exp, "log": value.log}[function]()
    if kind == "!":
        return 1.0 - _expression(parts[0])
    left, right = _expression(parts[0]), _expression(parts[1])
    if kind in COMPARISONS:
        missing_in = left - right  # engines order what is no number in several ways
        holds = nw.when(_compared(kind, left, right)).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return nw.when(~missing_in.is_null() & ~missing_in.is_nan()).then(holds)
    return {
        "&": lambda: left * right,
        "|": lambda: left + right - left * right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "^": lambda: left**right,
    }[kind]()


def _compared(operator: str, left: Any, right: Any) -> Any:
    return {
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "==": lambda: left == right,
        "!=": lambda: left != right,
    }[operator]()


def _column(node: Node) -> Any:
    """A made column: numbers, or the levels of what is true or false."""
    import narwhals.stable.v2 as nw

    value = _expression(node)
    if not _is_factor(node):
        return value
    word = nw.when(value == 1).then(nw.lit("TRUE")).otherwise(nw.lit("FALSE"))
    return nw.when(~value.is_null()).then(word)


def _days(moment: Any) -> Any:
    """Days since 1970 by the parts of a moment, which every engine knows."""
    import narwhals.stable.v2 as nw

    # doubles, because integers of pandas cannot be missing; these quotients are exact enough to be cut
    past = moment.year().cast(nw.Float64()) - 1
    leap = (past / 4).floor() - (past / 100).floor() + (past / 400).floor()
    day = 365 * past + leap + moment.ordinal_day().cast(nw.Float64()) - EPOCH
    hour, minute, second, rest = (
        part().cast(nw.Float64()) for part in (moment.hour, moment.minute, moment.second, moment.millisecond)
    )
    return day + (hour + (minute + (second + rest / 1000) / 60) / 60) / 24


def refuse_made(made: Iterable[tuple[str, Node]], there: Collection[str]) -> None:
    """Refuse columns that a formula makes of others, unless they are `there` by that name."""
    for column, _ in made:
        if column not in there:
            raise FormulaError(
                f"{column} would be made of other columns, which this fit or release does not do.",
                "Plain fits of `dc.mixed` do.",
                "Make the column first, and use it by its name.",
                about="formula",
            )


def with_columns(frame: AnyFrame, made: Mapping[str, Node], *, about: str = "formula") -> AnyFrame:
    """The frame with a column for each expression, under its spelling."""
    import narwhals.stable.v2 as nw

    schema, utc = frame.collect_schema(), {}
    for name, node in made.items():
        for column in columns(node):
            if column not in schema:
                raise DataError(missing(column, schema.names(), name="the data", about=about))
            dated = node[1] == "days"
            if not (schema[column] in (nw.Date, nw.Datetime) if dated else schema[column].is_numeric()):
                raise DataError(
                    f"{name} needs a {'date' if dated else 'numeric column'}, but {column!r} is {schema[column]}.",
                    remedy="Write dates as 2024-01-31." if dated else "Use numbers, and days(...) for dates.",
                    about=about,
                )
            if dated and getattr(schema[column], "time_zone", None):
                utc[column] = f"{column} in UTC {len(schema.names())}"
    wanted = [_column(_renamed(node, utc) if node[1] == "days" else node).alias(name) for name, node in made.items()]
    if not utc:
        return frame.with_columns(*wanted) if wanted else frame
    return _with_instants(frame, utc).with_columns(*wanted).drop(*utc.values())


def _with_instants(frame: AnyFrame, utc: Mapping[str, str]) -> AnyFrame:
    """The frame with moments of a time zone as those of UTC, under other names.

    DuckDB and Spark show moments in the zone of their session, from which narwhals cannot convert: they count
    microseconds instead, which also holds on nights when clocks are changed.
    """
    import narwhals.stable.v2 as nw

    native: Any = frame.to_native()
    if frame.implementation.is_duckdb():
        made = [f"make_timestamp(epoch_us({quoted(zoned)})) AS {quoted(plain)}" for zoned, plain in utc.items()]
        return open_frame(native.project(", ".join(["*", *made])), ordered=True)
    if frame.implementation.is_spark_like():
        start = "timestamp_ntz'1970-01-01 00:00:00'"
        of = [(f"`{zoned.replace('`', '``')}`", f"`{plain.replace('`', '``')}`") for zoned, plain in utc.items()]
        made = [f"timestampadd(MICROSECOND, unix_micros({zoned}), {start}) AS {plain}" for zoned, plain in of]
        return open_frame(native.selectExpr("*", *made), ordered=True)
    return frame.with_columns(
        nw.col(zoned).dt.convert_time_zone("UTC").dt.replace_time_zone(None).alias(plain)
        for zoned, plain in utc.items()
    )


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    """`days(...)` of a column by another name."""
    call, function, inside = node
    return call, function, ("column", names.get(inside[1], inside[1]))
