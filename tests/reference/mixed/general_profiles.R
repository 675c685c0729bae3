# Profile intervals of fixed effects by glmmTMB, on the data of general.R: Rscript general_profiles.R (in this folder)
suppressMessages(library(glmmTMB))
d <- read.csv("general.csv")
for (name in c("g", "h")) d[[name]] <- factor(d[[name]])
fits <- list(
  "tmb binomial" = glmmTMB(yes ~ x + (1 | g) + (1 | h), d, binomial),
  "negative-binomial" = glmmTMB(wide ~ x + (1 | g) + (1 | h), d, nbinom2),
  "zero-inflated-poisson" = glmmTMB(zip ~ x + (1 | g), d, poisson, ziformula = ~1)
)
found <- lapply(fits, function(fit) {
  ends <- t(sapply(1:2, function(i) confint(fit, parm = i, method = "uniroot")[1, 1:2]))
  list(intercept = ends[1, ], x = ends[2, ])
})
writeLines(jsonlite::toJSON(found, digits = 10, pretty = TRUE), "general_profiles.json")
