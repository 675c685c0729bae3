"""The posterior of a random-intercept model: ours by quadrature and by Gibbs, beside PyMC, bambi (nutpie) and NumPyro.

The same rows, the same priors, as many draws everywhere: in four chains, NumPyro in two, one on each core. bambi states
priors of standard deviations only, so its prior is the root of the others' inverse gamma; its groups are centred, which
is quicker here than its default. Samplers are compared by seconds per effective sample of the variance between groups,
of one run each; all effective sizes come from one function. It is the slowest parameter of nobody: the others'
intercept mixes more than ten times more slowly, because it trades off against the groups, and that is not held against
them. Compilation is counted only for the first answer, where ours is the first call of a fresh process; modules are
loaded before on both sides. Posterior means of that variance must lie within four Monte Carlo standard errors of the
exact one. The quick form has PyMC only, whose compiler is bambi's too: all three together take longer than a minute,
most of it to compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench import peers
from bench.comparison import Agreement, Comparison, Row, beside
from discreet.models.bayes.blmm.diagnostics import effective_size, standard_error

SIMULATED = """
import numpy as np
rows, groups, draws = map(int, sys.argv[1:4])
rng = np.random.default_rng(7)
g, x = rng.integers(groups, size=rows), rng.normal(size=rows)
y = 0.3 + 0.8 * x + rng.normal(scale=0.4, size=groups)[g] + rng.normal(scale=0.6, size=rows)
"""

OURS = (
    SIMULATED
    + """
import narwhals.stable.v2, pyarrow.compute, scipy.interpolate, scipy.linalg, scipy.optimize, scipy.sparse, scipy.special
from discreet.models.bayes.blmm import bayes_mixed
from discreet.models.bayes.blmm.gibbs import gibbs
table = {"y": y, "x": x, "g": g}
def posterior():
    fit = bayes_mixed("y ~ x + (1 | g)", table)
    return fit, fit.variance("g").mean
exact, (fit, mean) = measured(posterior)
sampled, chains = measured(lambda: gibbs(fit.posterior, draws=draws, chains=4, rng=1))
report(exact=exact["seconds"], mean=mean, sampling=sampled["seconds"], draws=chains.variances[:, :, 1].tolist())
"""
)

PYMC = (
    SIMULATED
    + """
import nutpie, pymc as pm
with pm.Model() as model:
    residual = pm.InverseGamma("residual", alpha=6, beta=0.624)
    group = pm.InverseGamma("group", alpha=6, beta=0.624)
    beta = pm.Normal("beta", 0, 1, shape=2)
    u = pm.Normal("u", 0, group ** 0.5, shape=groups)
    pm.Normal("y", beta[0] + beta[1] * x + u[g], residual ** 0.5, observed=y)
compiling, compiled = measured(lambda: nutpie.compile_pymc_model(model))
sampling, trace = measured(lambda: nutpie.sample(compiled, draws=draws, tune=500, chains=4, cores=2, seed=1,
                                                progress_bar=False))
report(first=compiling["seconds"] + sampling["seconds"], sampling=sampling["seconds"],
       draws=np.asarray(trace.posterior["group"]).tolist(), version=version("pymc"))
"""
)

BAMBI = (
    SIMULATED
    + """
import bambi, nutpie, pandas as pd, pymc as pm
def root(name, alpha, beta, dims=None, shape=None):
    return pm.Deterministic(name, pm.InverseGamma(f"{name}_squared", alpha=alpha, beta=beta) ** 0.5)
spread = lambda: bambi.Prior("RootInverseGamma", dist=root, auto_scale=False, alpha=6, beta=0.624)
normal = lambda sigma: bambi.Prior("Normal", auto_scale=False, mu=0, sigma=sigma)
priors = {"Intercept": normal(1), "x": normal(1), "1|g": normal(spread()), "sigma": spread()}
table = pd.DataFrame({"y": y, "x": x, "g": pd.Categorical(g)})
def built():
    return bambi.Model("y ~ x + (1 | g)", table, priors=priors, noncentered=False, center_predictors=False)
settings = {"draws": draws, "tune": 500, "chains": 4, "cores": 2}
first, fit = measured(lambda: built().fit(inference_method="nutpie", random_seed=1, progressbar=False, **settings))
model = built()
model.build()
compiled = nutpie.compile_pymc_model(model.backend.model, var_names=list(fit.posterior.data_vars))
sampling, trace = measured(lambda: nutpie.sample(compiled, seed=1, progress_bar=False, **settings))
report(first=first["seconds"], sampling=sampling["seconds"],
       draws=(np.asarray(trace.posterior["1|g_sigma"]) ** 2).tolist(), version=version("bambi"))
"""
)

NUMPYRO = (
    SIMULATED
    + """
import numpyro
numpyro.set_host_device_count(2)
import jax, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
jax.config.update("jax_enable_x64", True)
def model(x, g, y):
    residual = numpyro.sample("residual", dist.InverseGamma(6.0, 0.624))
    group = numpyro.sample("group", dist.InverseGamma(6.0, 0.624))
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([2]))
    u = numpyro.sample("u", dist.Normal(0, group ** 0.5).expand([groups]))
    numpyro.sample("y", dist.Normal(beta[0] + beta[1] * x + u[g], residual ** 0.5), obs=y)
mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=2 * draws, num_chains=2, chain_method="parallel",
            progress_bar=False)
def run(seed):
    mcmc.run(jax.random.PRNGKey(seed), x, g, y)
    return np.asarray(mcmc.get_samples(group_by_chain=True)["group"])
first, found = measured(lambda: run(1))
sampling, found = measured(lambda: run(2))
report(first=first["seconds"], sampling=sampling["seconds"], draws=found.tolist(), version=version("numpyro"))
"""
)


def compare(*, quick: bool) -> Comparison:
    """Seconds per effective sample, and seconds to an answer."""
    rows, groups, draws = (2_000, 50, 500) if quick else (20_000, 300, 500)
    size = f"{rows:,} rows, {groups} groups"
    ours = peers.ours(OURS, rows, groups, draws)
    mine = sampled(ours, ours["mean"])
    drawn = f"draws from a posterior, per effective sample, {size}"
    table: list[Row] = []

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        words = f"means {theirs['off']:.1f} and {mine['off']:.1f} standard errors from the exact"
        return Agreement(max(theirs["off"], mine["off"]) < 4, words)

    def agree_exact(theirs: Mapping[str, Any]) -> Agreement:
        return Agreement(theirs["off"] < 4, f"mean {np.mean(theirs['draws']):.4f}, exact {ours['mean']:.4f}")

    others = ((peers.PYMC, PYMC), (peers.BAMBI, BAMBI), (peers.NUMPYRO, NUMPYRO))
    for peer, script in others[:1] if quick else others:
        try:
            found = peer.measure(script, rows, groups, draws, seconds=600)
        except peers.Missing as reason:
            table.append(Row(drawn, peer.name, None, None, "not measured", str(reason)))
            continue
        theirs = sampled(found, ours["mean"])
        table.append(
            beside(
                drawn,
                peer.name,
                mine,
                theirs,
                agree=agree,
            )
        )
        exact = {"seconds": ours["exact"], "mib": ours["mib"]}
        table.append(
            beside(
                f"a first posterior, {size}: ours by quadrature",
                peer.name,
                exact,
                {**theirs, "seconds": found["first"]},
                agree=agree_exact,
            )
        )
    facts = {"effective samples of ours": mine["effective"], "exact mean": ours["mean"]}
    return Comparison(tuple(table), facts=facts)


def sampled(found: Mapping[str, Any], exact: float) -> dict[str, Any]:
    """Seconds per effective sample, and how many standard errors the mean lies from the exact one."""
    draws = np.asarray(found["draws"])[:, :, None]
    effective = float(effective_size(draws)[0])
    off = abs(float(draws.mean()) - exact) / float(standard_error(draws)[0])
    return {**found, "seconds": found["sampling"] / effective, "effective": effective, "off": off}
