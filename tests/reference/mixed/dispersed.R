# Widely dispersed counts by glmmTMB, for test_dispersed.py: python test_dispersed.py FOLDER && Rscript dispersed.R FOLDER > dispersed.json
suppressMessages({library(glmmTMB); library(jsonlite)})
control <- glmmTMBControl(optCtrl = list(iter.max = 1000, eval.max = 1000, rel.tol = 1e-14, x.tol = 1e-12))
found <- list()
for (file in list.files(commandArgs(TRUE)[1], "csv$", full.names = TRUE)) {
  d <- read.csv(file); name <- sub(".csv", "", basename(file)); zeros <- startsWith(name, "zeros")
  m <- suppressWarnings(glmmTMB(if (zeros) y ~ x + (1 | g) else y ~ x + (1 | g) + (1 | k), d, family = nbinom2,
    ziformula = if (zeros) ~1 else ~0, control = control))
  error <- sqrt(diag(vcov(m)$cond))
  if (anyNA(error)) error <- sqrt(diag(vcov(update(m, if (zeros) . ~ . else y ~ x + (1 | g)))$cond))  # a term of variance zero
  found[[name]] <- list(loglik = -m$fit$objective, fixed = as.list(fixef(m)$cond), se = as.list(error),
    size = sigma(m), zeros = if (zeros) plogis(fixef(m)$zi[[1]]) else NULL)
}
cat(toJSON(found, auto_unbox = TRUE, digits = NA, pretty = TRUE), "\n")
