# make            libraries, tools and programs, all under build/
# make run        set up, build, run the main job and show its verified result
# make check      set up, build, run all tests
# make bench      what every operation costs, and programs next to MPI and threads
# make lint       layers, format, clang-tidy, shellcheck, man pages
# make check-mutants    the tests find every rule that is taken away
# make check-asan check-tsan check-valgrind    the tests under each of them
# make format     lay all C files out with clang-format
# make deps       install what is missing (DEPS=no: only say what)
# make install    PREFIX=/usr/local DESTDIR=
# make clean      remove what was built
# make help       this list
#
# One makefile, no recursion; dependencies come from the compiler (-MMD).
# CFLAGS, CPPFLAGS, LDFLAGS, CC are yours; what the code needs is in ALL_*.
# O=dir builds elsewhere; V=1 shows commands; WERROR=1; DEPS=no;
# SANITIZE=address,undefined; STEP=name runs that step of the tests only

VERSION := 0.1
SONAME  := 0
O       ?= build
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCDIR  ?= $(PREFIX)/include
MODDIR  ?= $(LIBDIR)/jia/gfortran
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/dajia
DATADIR ?= $(PREFIX)/share/dajia
INSTALL ?= install
CFLAGS  ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
	-Wformat=2 -Wpointer-arith -Wcast-qual -Wwrite-strings
CODE_CPPFLAGS = -D_GNU_SOURCE $(CPPFLAGS)
ALL_CPPFLAGS = -MMD -MP $(CODE_CPPFLAGS)
ALL_CFLAGS   = -std=gnu11 -pthread -fPIC -fvisibility=hidden $(WARN) $(CFLAGS)
ifdef WERROR
ALL_CFLAGS += -Werror
SHLIB_LDFLAGS = $(if $(SANITIZE),,-Wl,--no-undefined)
endif
ifdef SANITIZE
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
endif
ifndef V
Q := @
say = @printf '  %-5s %s\n' $(1) $@
endif

# What each folder can see is what the layers allow, and nothing else.
inc_comm  := -Icomm -Ikernel/uapi
inc_dsm   := -Idsm -Icomm -Ikernel/uapi
inc_apps  := -Idsm -Iapps
inc_tools := -Itools -Idsm -Icomm -Ikernel/uapi
inc_tests := -Itests -Itests/unit -Itools -Idsm -Icomm -Ikernel/uapi
inc_tests/oracle := -Idsm
inc_tests/litmus := -Idsm
inc_tests/misuse := -Idsm
inc_tests/api := -Idsm
inc = $(or $(inc_$(patsubst %/,%,$(dir $*))),$(inc_$(firstword $(subst /, ,$*))))

# A program is a file without '_' in its name; NAME_part.c belongs to NAME.
# app.c and app_*.c belong to all of apps/.  A folder tests/NAME/ is one program;
# tests/litmus/ is one for each file.
objs = $(patsubst %.c,$(O)/obj/%.o,$(sort $(wildcard $(1))))
sul_objs  := $(call objs,comm/*.c)
dsm_objs  := $(call objs,dsm/*.c)
app_objs  := $(call objs,apps/app.c apps/app_*.c)
unit_objs := $(call objs,tests/unit/*.c)
programs  = $(foreach f,$(wildcard $(1)/*.c),$(if $(findstring _,$(f)),,$(f)))
apps_src  := $(filter-out apps/app.c,$(call programs,apps))
tools_src := $(call programs,tools)
tests_src := $(call programs,tests) $(wildcard tests/litmus/*.c) \
	$(patsubst %/,%.c,$(filter-out $(addprefix tests/,unit/ tools/ litmus/ \
	sim/ bench/),$(sort $(dir $(wildcard tests/*/*.c)))))
apps  := $(apps_src:%.c=$(O)/%)
tools := $(tools_src:tools/%.c=$(O)/bin/%)
tests := $(sort $(tests_src:%.c=$(O)/%)) \
	$(if $(wildcard tests/unit/*.c),$(O)/tests/unit/run)
run-tests := $(O)/tests/tools/run-tests

lib := $(O)/lib
jia_so := $(lib)/libjia.so.$(VERSION)
sul_so := $(lib)/libsul.so.$(VERSION)
libs := $(lib)/libsul.a $(lib)/libsul.so $(lib)/libjia.a $(lib)/libjia.so \
	$(lib)/pkgconfig/jia.pc $(O)/include/jia.h

# Wrappers of the compilers; Fortran where there is a compiler for it.
ifeq ($(origin FC),default)
FC := $(shell command -v gfortran 2> /dev/null)
endif
wrappers := jiacc jiac++ $(if $(FC),jiaf90)
libs += $(wrappers:%=$(O)/bin/%) $(if $(FC),$(lib)/libjiaf.a)

.PHONY: all tests bench mutants check-mutants deps deps-ci run check lint tidy check-asan check-tsan \
	check-valgrind install clean help FORCE
all: $(libs) $(apps) $(tools)

# --- set up -------------------------------------------------------------------
deps:
	$(Q)tests/tools/deps $(if $(filter no,$(DEPS)),--dry-run) build
deps-ci:
	$(Q)tests/tools/deps $(if $(filter no,$(DEPS)),--dry-run) build ci

# --- objects ------------------------------------------------------------------
needs_deps := $(if $(filter run check,$(MAKECMDGOALS)),deps)

# Rewritten when they change, so that other flags mean other objects.
$(O)/flags: FORCE | $(needs_deps)
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS)' | \
		cmp -s - $@ || \
		echo '$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS)' > $@

$(O)/obj/%.o: %.c Makefile $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(inc) $(ALL_CFLAGS) -c -o $@ $<

# --- libraries ----------------------------------------------------------------
$(lib)/libsul.a: $(sul_objs)
$(lib)/libjia.a: $(dsm_objs) $(sul_objs)
$(lib)/%.a:
	@mkdir -p $(@D)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(sul_so): comm/sul.map $(sul_objs)
$(jia_so): dsm/jia.map $(dsm_objs) $(sul_objs)
$(lib)/%.so.$(VERSION):
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) -shared $(ALL_CFLAGS) $(SHLIB_LDFLAGS) $(LDFLAGS) -o $@ \
		-Wl,-soname,$*.so.$(SONAME) -Wl,--version-script=$< \
		$(filter %.o,$^) -lsigsegv

$(lib)/%.so: $(lib)/%.so.$(VERSION)
	$(Q)ln -sf $(<F) $(lib)/$*.so.$(SONAME)
	$(Q)ln -sf $*.so.$(SONAME) $@

$(O)/include/jia.h: dsm/jia.h
	@mkdir -p $(@D)
	$(Q)cp $< $@

# PREFIX and so on of the build tree, and of what gets installed.
pc = sed -e 's|@prefix@|$(1)|;s|@libdir@|$(2)|;s|@includedir@|$(3)|' \
	-e 's|@version@|$(VERSION)|;s|@rpath@|$(4)|' dsm/jia.pc.in
$(lib)/pkgconfig/jia.pc: dsm/jia.pc.in Makefile
	@mkdir -p $(@D)
	$(Q)$(call pc,$(abspath $(O)),$(abspath $(lib)),$(abspath \
		$(O)/include),-Wl$(comma)-rpath$(comma)$${libdir} ) > $@
comma := ,

# The wrappers are one script, which looks at its name.
cc_paths = sed -e 's|@prefix@|$(1)|;s|@bindir@|$(2)|;s|@libdir@|$(3)|' \
	-e 's|@includedir@|$(4)|;s|@moddir@|$(5)|;s|@version@|$(VERSION)|' \
	tools/jiacc.in
$(O)/bin/jiacc: tools/jiacc.in Makefile
	@mkdir -p $(@D)
	$(Q)$(call cc_paths,$(abspath $(O)),$(abspath $(O)/bin),$(abspath \
		$(lib)),$(abspath $(O)/include),$(abspath $(O)/include)) > $@
	$(Q)chmod +x $@
$(O)/bin/jiac++ $(O)/bin/jiaf90: $(O)/bin/jiacc
	$(Q)ln -sf $(<F) $@

$(O)/obj/dsm/jia_f90.o: dsm/jia.f90 Makefile $(O)/flags
	@mkdir -p $(@D) $(O)/include
	$(call say,FC)
	$(Q)$(FC) -O2 -g -fPIC -J$(O)/include -c -o $@ $<
$(lib)/libjiaf.a: $(O)/obj/dsm/jia_f90.o

# --- programs -----------------------------------------------------------------
link = $(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
	$(filter-out $(lib)/%,$(filter %.a,$^)) $(filter $(lib)/%.a,$^)

define program # NAME FOLDER SOURCE
$(2)/$(1): $(call objs,$(3).c $(filter-out tests/litmus/%,$(3)_*.c) $(3)/*.c)
endef
$(foreach f,$(apps_src:apps/%.c=%),$(eval $(call program,$(f),$(O)/apps,apps/$(f))))
$(foreach f,$(tools_src:tools/%.c=%),$(eval $(call program,$(f),$(O)/bin,tools/$(f))))
$(foreach f,$(sort $(tests_src:%.c=%)),$(eval $(call program,$(f),$(O),$(f))))
$(O)/tests/unit/run: $(unit_objs) $(O)/obj/tools/parts.a

# What the unit tests may take of the tools: all but the files with a main().
$(O)/obj/tools/parts.a: $(call objs,tools/*_*.c)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(apps): $(app_objs) $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) -lsigsegv -lm

$(tools): $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) -lsigsegv -ljansson -lm

$(tests): $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) -lsigsegv -lcunit -ljansson -lm

$(run-tests): $(O)/obj/tests/tools/run-tests.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(link)

# --- the protocol with its scheduling points, and with one rule taken away ----
# $(O)/mutants/NAME/: the files in which a rule or a point stands are compiled
# anew; NAME none is the protocol as it is.  The rest comes from libjia.a.
mutants := none $(shell sed -n 's/^MUTANT.\([a-z0-9_]*\),.*/\1/p' dsm/dsm_mutant.def)
mutant_src := $(shell grep -lE 'DSM_(BROKEN|POINT|MUTANT)' dsm/*.c tests/sim/*.c \
	2>/dev/null)
sim_rest := $(filter-out $(mutant_src),$(wildcard tests/sim/*.c))
sims := $(mutants:%=$(O)/mutants/%/sim)
oracles := $(mutants:%=$(O)/mutants/%/oracle)

define mutant # NAME
$(O)/mutants/$(1)/%.o: %.c Makefile $(O)/flags
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) -DDSM_POINTS -DDSM_MUTANT=$(1) $$(inc) \
		$$(ALL_CFLAGS) -c -o $$@ $$<
$(O)/mutants/$(1)/sim: $(mutant_src:%.c=$(O)/mutants/$(1)/%.o)
$(O)/mutants/$(1)/oracle: $(patsubst %.c,$(O)/mutants/$(1)/%.o,$(filter dsm/%,$(mutant_src)))
endef
$(foreach m,$(mutants),$(eval $(call mutant,$(m))))
$(sims): $(sim_rest:%.c=$(O)/obj/%.o) $(lib)/libjia.a
	$(call say,LD)
	$(link) -lsigsegv -lm
$(oracles): $(call objs,tests/oracle/*.c) $(lib)/libjia.a
	$(call say,LD)
	$(link) -lsigsegv
$(O)/tests/sim: $(O)/mutants/none/sim
	@mkdir -p $(@D)
	$(Q)ln -sf ../mutants/none/sim $@
mutants: $(sims) $(oracles)

# --- run and test -------------------------------------------------------------
run: deps all
	$(O)/bin/jiarun -n 4 --stats $(O)/apps/lu
	$(O)/bin/jiarun -n 4 --stats $(O)/apps/tsp apps/data/ulysses22.tsp

# Every test and check is a row of tests/steps; a row's tags say where it runs.
run_tests = $(Q)O=$(O) CC='$(CC)' $(run-tests) --tag $(1) \
	$(if $(STEP),--step $(STEP)) --log $(O)/tests/log tests/steps

sim := $(if $(wildcard tests/sim/*.c),$(O)/tests/sim)
tests: $(tests) $(sim) $(run-tests)
check: deps all tests $(if $(sim),mutants)
	$(call run_tests,check)
check-mutants: all tests mutants
	$(call run_tests,mutants)

# What programs are compared with; the MPI one is built where there is MPI.
MPICC ?= mpicc
bench_programs := $(O)/tests/bench/mm_threads \
	$(if $(shell command -v $(MPICC)),$(O)/tests/bench/sor_mpi)
$(O)/tests/bench/mm_threads: $(call objs,tests/bench/mm_threads.c)
	@mkdir -p $(@D)
	$(call say,LD)
	$(link)
$(O)/tests/bench/sor_mpi: tests/bench/sor_mpi.c Makefile $(O)/flags
	@mkdir -p $(@D)
	$(call say,MPI)
	$(Q)$(MPICC) $(CODE_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< -lm
bench: all $(bench_programs)
	$(O)/bin/jiabench --np=2,4,8 --hardware --count
	O=$(O) tests/bench/run

lint: $(run-tests)
	$(call run_tests,lint)

# The same makefile for another output folder, not for a subfolder.
check-asan:
	$(Q)$(MAKE) O=$(O)-asan SANITIZE=address,undefined sanitize-asan
check-tsan:
	$(Q)$(MAKE) O=$(O)-tsan SANITIZE=thread CC=clang sanitize-tsan
check-valgrind: tests
	$(call run_tests,valgrind)
format:
	$(Q)tests/tools/check-format --fix
.PHONY: format sanitize-asan sanitize-tsan
sanitize-asan: all tests
	$(call run_tests,asan)
sanitize-tsan: tests
	$(call run_tests,tsan)

# --- clang-tidy: a stamp per file ---------------------------------------------
tidy_src := $(filter-out tests/bench/sor_mpi.c,$(wildcard \
	comm/*.c dsm/*.c apps/*.c tools/*.c tests/*.c tests/*/*.c))
tidy: $(tidy_src:%.c=$(O)/tidy/%)
$(O)/tidy/%: %.c .clang-tidy apps/.clang-tidy tests/.clang-tidy $(wildcard */*.h */*.def kernel/uapi/*.h)
	@mkdir -p $(@D)
	$(call say,TIDY)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- -std=gnu11 \
		$(CODE_CPPFLAGS) $(inc) >$@.out 2>&1 || \
		{ grep -E '(error|warning): ' $@.out || cat $@.out; exit 1; }
	@touch $@

# --- install ------------------------------------------------------------------
man := $(wildcard doc/*.[1-8])
# The names of a page; all but the file's own become links to it.
man_names = awk '/^\.Sh/ { on = $$2 == "NAME" } on && $$1 == ".Nm" { print $$2 }'
install: all
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(INCDIR) $(DESTDIR)$(MANDIR)/man1 \
		$(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man7
	$(if $(tools),$(INSTALL) $(tools) $(DESTDIR)$(BINDIR))
	$(INSTALL) -m 644 $(lib)/libjia.a $(lib)/libsul.a $(jia_so) $(sul_so) \
		$(DESTDIR)$(LIBDIR)
	for l in libjia libsul; do \
		cp -P $(lib)/$$l.so $(lib)/$$l.so.$(SONAME) \
			$(DESTDIR)$(LIBDIR) || exit; done
	$(INSTALL) -m 644 dsm/jia.h $(DESTDIR)$(INCDIR)
	$(call cc_paths,$(PREFIX),$(BINDIR),$(LIBDIR),$(INCDIR),$(MODDIR)) > \
		$(DESTDIR)$(BINDIR)/jiacc
	chmod 755 $(DESTDIR)$(BINDIR)/jiacc
	for w in $(filter-out jiacc,$(wrappers)); do \
		ln -sf jiacc $(DESTDIR)$(BINDIR)/$$w || exit; done
	$(if $(FC),$(INSTALL) -d $(DESTDIR)$(MODDIR))
	$(if $(FC),$(INSTALL) -m 644 $(O)/include/jia.mod $(DESTDIR)$(MODDIR))
	$(if $(FC),$(INSTALL) -m 644 $(lib)/libjiaf.a $(DESTDIR)$(LIBDIR))
	$(INSTALL) -d $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 644 dsm/jia.f90 tools/jia.gdb $(DESTDIR)$(DATADIR)
	$(INSTALL) -m 644 $(wildcard doc/examples/*) $(DESTDIR)$(DOCDIR)/examples
	$(call pc,$(PREFIX),$(LIBDIR),$(INCDIR)) > \
		$(DESTDIR)$(LIBDIR)/pkgconfig/jia.pc
	for m in $(man); do \
		s=$${m##*.} dir=$(DESTDIR)$(MANDIR)/man$${m##*.}; \
		$(INSTALL) -m 644 $$m $$dir || exit; \
		for n in $$($(man_names) $$m); do \
			[ -e doc/$$n.$$s ] || echo ".so man$$s/$${m##*/}" \
				> $$dir/$$n.$$s || exit; \
		done; \
	done

clean:
	rm -rf $(O) $(O)-asan $(O)-tsan

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' $(firstword $(MAKEFILE_LIST))

.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(O)/obj $(O)/mutants -name '*.d' 2>/dev/null)
