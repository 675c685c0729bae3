# Predictions with standard errors by glmmTMB, on the data of general.R: Rscript general_predictions.R (in this folder)
# The rows that are new: levels that the fit knows, one it has never seen of g, and one of both.
suppressMessages(library(glmmTMB))
d <- read.csv("general.csv")
for (name in c("g", "h")) d[[name]] <- factor(d[[name]])
new <- data.frame(g = c("1", "17", "new", "new"), h = c("3", "11", "3", "new"), x = c(0.4, -1.3, 0.4, 2.1), e = 1, trials = 1)
tight <- glmmTMBControl(optimizer = optim, optArgs = list(method = "BFGS"), optCtrl = list(maxit = 2000, reltol = 1e-16))
tmb <- function(formula, family, ...) glmmTMB(formula, d, family = family, control = tight, ...)
fits <- list(
  "tmb binomial" = tmb(yes ~ x + (1 | g) + (1 | h), binomial),
  "tmb trials" = glmmTMB(share ~ x + (x | g), d, family = binomial, weights = trials, control = tight),
  "tmb poisson" = tmb(count ~ x + offset(log(e)) + (x | g) + (1 | h), poisson),
  "negative-binomial" = tmb(wide ~ x + (1 | g) + (1 | h), nbinom2),
  "zero-inflated-poisson" = tmb(zip ~ x + (1 | g), poisson, ziformula = ~1),
  "zero-inflated-negative-binomial" = tmb(zinb ~ x + (1 | g), nbinom2, ziformula = ~1)
)
asked <- function(fit, ...) {
  found <- predict(fit, se.fit = TRUE, ...)
  list(value = unname(found$fit), error = unname(found$se.fit))
}
found <- lapply(fits, function(fit) {
  by <- function(type) list(
    fitted = lapply(asked(fit, type = type), head, 8),
    new = asked(fit, newdata = new, type = type, allow.new.levels = TRUE),
    marginal = asked(fit, newdata = new[1:2, ], type = type, re.form = NA))
  list(link = by("link"), response = by("response"))
})
found$versions <- list(glmmTMB = as.character(packageVersion("glmmTMB")))
writeLines(jsonlite::toJSON(found, digits = 12, pretty = TRUE), "general_predictions.json")
