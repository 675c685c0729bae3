"""`release_mixed`, the door to private mixed models: from a formula and confidential data to a public fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.models.formula.arithmetic import refuse_made
from discreet.models.formula.formula import lag_name, read_formula, without_lags
from discreet.models.linear.private.generalised import private_family, refuse_family
from discreet.models.linear.private.offers import ModelQuestion
from discreet.models.linear.private.partition import Blocks
from discreet.models.linear.private.request import (
    PUBLIC,
    Interval,
    Method,
    ModelRequest,
    columns_in_time,
    earlier,
    loss_of,
    scale_of,
    unit_of,
)
from discreet.models.linear.private.result import PrivateFit
from discreet.privacy.columns import declared, refuse_undeclared, taken
from discreet.privacy.losses import Loss, Number
from discreet.privacy.units import Groups
from discreet.release.account import Account
from discreet.release.payer import Payer
from discreet.release.question import Question, releases
from discreet.words.errors import FormulaError, PrivacyError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent


@releases
def release_mixed(
    formula: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    public: Sequence[str] = (),
    method: Method = "moments",
    bounds: Interval | None = None,
    clip: Interval | None = None,
    protect: Sequence[str] = (),
    split: Mapping[str, Number] | None = None,
    lagged: Sequence[str] = (),
    series: Sequence[str] = (),
    time: str | None = None,
    family: str = "gaussian",
    exposure: str | None = None,
    blocks: Blocks = "optimal",
    sizes: Mapping[str, Number] | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> Question[PrivateFit]:
    """Release a linear mixed model, or a linear model, under differential privacy.

    One row's response is protected and cannot stop the release; `public` columns and the number of rows are known.

    Parameters
    ----------
    formula, data : as for `mixed`; a formula without a random term is a linear model.
    epsilon, rho : the whole loss: Laplace noise for epsilon, Gaussian for rho.
    public : the columns that everybody may know. Every column of the formula but the response must be one of them.
    method : "moments" (noisy sums, proved jointly), "strict" (sub-sample and aggregate, proved jointly,
        standard errors of fixed effects only) or "paper" (sub-sample and aggregate as published). Random slopes and
        crossed factors are for "moments" without lags; the others have nested random intercepts.
    bounds : where responses lie, known without the data. An account has them; the documents' rates have defaults.
        A response outside counts as the nearer end, one that is missing or not finite as the middle.
    clip : a range inside the bounds to pull responses into: less noise, and estimates of the clipped response.
    split : shares of the loss by part, adding up to one.
    protect : public columns that name who is protected: all rows with the same values change together, those of one
        establishment or county. Left out, single rows are protected. "moments" only.
    lagged : public columns that hold earlier responses, which were published already.
    series, time : for terms such as lag(y, 1), the response of one period earlier, which is protected like every
        other: the columns that name a series, and the one that counts its periods. Both are public. Rows without
        all their lags only serve as lags. "moments" only.
    family : "gaussian", "binomial" for responses in [0, 1] or true and false, or "poisson" for counts, with logit and
        log links and nested random intercepts. "moments" only.
    exposure : for counts: the public column that they are proportional to.
    blocks : for "paper" and "strict", the number of blocks: "optimal" for k*, "most" for N^(2/3), or a number.
    sizes : for "strict", typical sizes of `fixed` coefficients and `groups` effects, which decide what is clipped; a
        share of the loss chooses those that are left out.
    account : whose budget pays.
    ledger, budget, dataset : the ledger that pays, instead of an account; the total that opens the budget of `dataset`
        in it (a number is in epsilon or rho, as the loss is; leave it out once it is open); and that name (a file has
        its own). Without account and ledger the release is recorded only in its own guarantee.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the noise reproducible and the release not private.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The estimates, with their guarantee.

    Examples
    --------
    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> fit = release_mixed("y ~ 1 + (1 | g)", data, epsilon=10, public=["g"], bounds=(0, 1), seed=1)
    >>> fit.guarantee.loss
    Pure(epsilon=Fraction(10, 1))
    >>> fit.effects["g"]["a"] < fit.effects["g"]["b"]
    True
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    spent = loss_of(epsilon, rho)
    if method not in ("moments", "paper", "strict"):
        raise PrivacyError(
            (Argument("method", method), " is not known."),
            "Models are released by noisy sums, or by sub-samples that are averaged.",
            "Use 'moments', 'strict' or 'paper'.",
            about="method",
        )
    model, lags = without_lags(read_formula(formula, needs_random=False))
    if lags and method != "moments":
        raise FormulaError(
            f"{lag_name(model.response.column, lags[0])} was asked of method={method!r}.",
            "Lags are inside the guarantee of noisy sums: a block of rows does not hold what is earlier.",
            "Leave method out, or make a column of published responses and name it under lagged.",
            about="formula",
        )
    response = model.response.column
    beside = columns_in_time(response, lags, series, time)
    if exposure is not None:
        beside = (*beside, exposure)
    columns = tuple(dict.fromkeys([*model.columns[1:], *beside]))
    if bounds is None and account is None:
        bounds = private_family(family).bounds
    unit, natural = unit_of(response, bounds, account, protect)
    if isinstance(unit, Groups):
        columns = tuple(dict.fromkeys([*columns, *unit.by]))
        if lags:
            raise PrivacyError(
                f"lag({response}, {lags[0]}) was requested together with groups of rows that change together.",
                "Lags are inside the guarantee of single rows.",
                "Leave the lags out, or protect single rows.",
                about="protect" if account is None else "formula",
            )
    refuse_made(model.made, known := declared(public, unit))
    asked_of = {column: "names who is protected" for column in protect if column not in model.columns}
    refuse_undeclared(columns, known, why=PUBLIC.format(response), parts=asked_of)
    request = ModelRequest(
        spent,
        unit,
        scale_of(clip, natural),
        public=columns,
        lagged=earlier(lagged, columns),
        seed=payer.partition_seed,
        lags=lags,
        series=tuple(series),
        time=time or "",
        family=family,
        exposure=exposure or "",
    )
    refuse_family(request, method, exposure)
    if request.together and method != "moments":
        raise PrivacyError(
            (Argument("method", method), f" was asked for with {request.unit.key}."),
            "Blocks of rows protect single rows; noisy sums protect groups of rows too.",
            "Leave method out.",
            about="method",
        )
    if account is not None:
        account.compare(taken(request.unit, request.public))
    return ModelQuestion(model, request, method, payer, split, blocks, sizes, progress)
