# SPDX-License-Identifier: MIT
# kernels.awk - a table, JSON or the points of a plot from what was measured.
#
# Files: kernels.tab, then samples, lines of KERNEL VARIANT KEY VALUE, in which KEY
# is "seconds" or a counter.  Variables: form (table, json, plot); kernels, variants
# and counters, lists; column, of the flags in kernels.tab; rounds, processors,
# load_before, load, date, machine.

FILENAME ~ /\.tab$/ {
	split($0, field, "\t")
	if (!/^#/ && NF) {
		kind[field[1]] = field[2]
		flags[field[1]] = field[column]
	}
	next
}

{
	n = ++samples[$1, $2, $3]
	# In order, so that the median is known at the end.
	for (i = n; i > 1 && value[$1, $2, $3, i - 1] > $4 + 0; i--)
		value[$1, $2, $3, i] = value[$1, $2, $3, i - 1]
	value[$1, $2, $3, i] = $4 + 0
}

END {
	nkernels = split(kernels, kernel, " ")
	nvariants = split(variants, variant, " ")
	ncounters = split(counters, counter, " ")
	split("regular all", mean, " ")
	if (form == "table")
		table()
	else if (form == "json")
		json()
	else
		plot()
}

# --- figures ------------------------------------------------------------------

function runs(k, v) {
	return samples[k, v, "seconds"] + 0
}

function median(k, v, key, n) {
	n = samples[k, v, key] + 0
	return n % 2 ? value[k, v, key, (n + 1) / 2] : \
		(value[k, v, key, n / 2] + value[k, v, key, n / 2 + 1]) / 2
}

function least(k, v) {
	return value[k, v, "seconds", 1]
}

# How many times faster than @other; 0: one of them is missing.
function faster(k, v, other, of_least) {
	if (!runs(k, v) || !runs(k, other))
		return 0
	return of_least ? over(least(k, other), least(k, v)) : \
		over(median(k, other, "seconds"), median(k, v, "seconds"))
}

function over(a, b) {
	return b > 0 ? a / b : 0
}

function workers(v, part) {
	return split(v, part, "_") > 1 ? part[2] : 1
}

function belongs(k, m) {
	return kind[k] == "regular" || (m == "all" && kind[k] != "extra")
}

# Geometric mean of faster(); how many there were is in mean_of.
function geometric(m, v, other, of_least, i, sum, f) {
	mean_of = sum = 0
	for (i = 1; i <= nkernels; i++)
		if (belongs(kernel[i], m) && (f = faster(kernel[i], v, other, of_least))) {
			sum += log(f)
			mean_of++
		}
	return mean_of ? exp(sum / mean_of) : 0
}

# How many there should be.
function members(m, i, n) {
	for (i in kind)
		n += belongs(i, m)
	return n
}

# --- table --------------------------------------------------------------------

function text(f) {
	return f ? sprintf("%.2f", f) : "-"
}

function head(name, i) {
	printf "%-11s %-9s %9s %9s %6s %6s %6s", name, "run", "median s", "least s", "speed", "effic", "/2thr"
	for (i = 1; i <= ncounters; i++)
		printf " %10s", counter[i]
	print ""
}

function line(k, v, i) {
	printf "%-11s %-9s %9.4f %9.4f %6s %6s %6s", k, v, median(k, v, "seconds"), least(k, v), \
		text(faster(k, v, "serial")), text(faster(k, v, "serial") / workers(v)), text(faster(k, v, "pthread_2"))
	for (i = 1; i <= ncounters; i++)
		printf " %10s", samples[k, v, counter[i]] ? sprintf("%.0f", median(k, v, counter[i])) : "-"
	print ""
}

function means(m, v, speed, of) {
	speed = geometric(m, v, "serial")
	of = mean_of
	if (of)
		printf "%-11s %-9s %6s %6s %6s %6s   %d of %d\n", m, v, text(speed), text(geometric(m, v, "serial", 1)), \
			text(geometric(m, v, "pthread_2")), text(geometric(m, v, "pthread_2", 1)), of, members(m)
}

function table(i, j) {
	printf "kernels, %s, %d times in turn, %d processors, load %s to %s, %s\n\n", date, rounds, processors, load_before, load, machine
	head("kernel")
	for (i = 1; i <= nkernels; i++)
		for (j = 1; j <= nvariants; j++)
			if (runs(kernel[i], variant[j]))
				line(kernel[i], variant[j])
	print "\ngeometric means: speed-up of medians, of minima; speed over that of 2 threads, of medians, of minima"
	for (i = 1; i <= 2; i++)
		for (j = 2; j <= nvariants; j++)
			means(mean[i], variant[j])
}

# --- JSON ---------------------------------------------------------------------

function quoted(s) {
	gsub(/["\\]/, "\\\\&", s)
	return "\"" s "\""
}

function number(name, f) {
	return f ? sprintf(", %s: %.6g", quoted(name), f) : ""
}

function seconds_list(k, v, i, s) {
	for (i = 1; i <= runs(k, v); i++)
		s = s (i > 1 ? ", " : "") sprintf("%.6f", value[k, v, "seconds", i])
	return s
}

function json_run(k, v, i) {
	printf "%s: {\"workers\": %d, \"median\": %.6f, \"least\": %.6f, \"seconds\": [%s]%s%s%s", quoted(v), workers(v), \
		median(k, v, "seconds"), least(k, v), seconds_list(k, v), number("speedup", faster(k, v, "serial")), \
		number("efficiency", faster(k, v, "serial") / workers(v)), number("threads_ratio", faster(k, v, "pthread_2"))
	for (i = 1; i <= ncounters; i++)
		if (samples[k, v, counter[i]])
			printf ", %s: %.0f", quoted(counter[i]), median(k, v, counter[i])
	printf "}"
}

function json_kernel(k, j, before) {
	printf "    %s: {\"kind\": %s, \"flags\": %s, \"runs\": {", quoted(k), quoted(kind[k]), quoted(flags[k])
	for (j = 1; j <= nvariants; j++)
		if (runs(k, variant[j])) {
			printf "%s\n      ", before
			json_run(k, variant[j])
			before = ","
		}
	printf "}}"
}

function json_mean(m, v, of) {
	geometric(m, v, "serial")
	of = mean_of
	printf "\n      %s: {\"kernels\": %d%s%s%s%s}", quoted(v), of, number("speedup", geometric(m, v, "serial")), \
		number("speedup_of_least", geometric(m, v, "serial", 1)), number("threads_ratio", geometric(m, v, "pthread_2")), \
		number("threads_ratio_of_least", geometric(m, v, "pthread_2", 1))
}

function json(i, j) {
	printf "{\n  \"format\": \"dajia-kernels\",\n  \"version\": 1,\n  \"date\": %s,\n  \"system\": %s,\n", quoted(date), quoted(machine)
	printf "  \"processors\": %d,\n  \"load\": [%s, %s],\n  \"rounds\": %d,\n  \"kernels\": {", processors, load_before, load, rounds
	for (i = 1; i <= nkernels; i++) {
		print (i > 1 ? "," : "")
		json_kernel(kernel[i])
	}
	printf "\n  },\n  \"geometric_means\": {"
	for (i = 1; i <= 2; i++) {
		printf "%s\n    %s: {", (i > 1 ? "," : ""), quoted(mean[i])
		for (j = 2; j <= nvariants; j++) {
			printf "%s", (j > 2 ? "," : "")
			json_mean(mean[i], variant[j])
		}
		printf "}"
	}
	print "\n  }\n}"
}

# --- plot ---------------------------------------------------------------------

# Is there any point of it?
function shown(v, i) {
	for (i = 1; i <= nkernels; i++)
		if (faster(kernel[i], v, "serial"))
			return 1
	return 0
}

function plot(i, j) {
	printf "kernel"
	for (j = 2; j <= nvariants; j++)
		if (shown(variant[j]))
			printf " %s", variant[j]
	print ""
	for (i = 1; i <= nkernels; i++) {
		printf "%s", kernel[i]
		for (j = 2; j <= nvariants; j++)
			if (shown(variant[j]))
				printf " %s", text(faster(kernel[i], variant[j], "serial"))
		print ""
	}
}
