# make            libraries, tools and programs, all under build/
# make run        set up, build, run the main job and show its verified result
# make check      set up, build, run all tests
# make bench      what every operation costs, and programs next to MPI and threads:
#                 ROUNDS=5 KERNELS="sor lu" (all)
# make bench-net        what jobs of several hosts cost: network namespaces (root)
# make lint       layers, format, clang-tidy, shellcheck, man pages
# make check-net        jobs on hosts of our own: network namespaces, ssh (root)
# make check-kernel     the module, in emulated machines (QEMU; no root)
# make check-kernel-mutants  a race finds each rule of it that is taken away
# make check-kasan      the same on a kernel that watches itself: KERNEL= KDIR=
# make check-mutants    the tests find every rule that is taken away
# make check-asan check-tsan check-valgrind    the tests under each of them
# make check-fuzz    what reads the wire reads anything (clang, libFuzzer)
# make format     lay all C files out with clang-format
# make deps       install what is missing (DEPS=no: only say what)
# make module     the kernel module sul.ko, for KVER= or the kernel tree KDIR=
# make install    PREFIX=/usr/local DESTDIR=
# make install-module   sul.ko, its udev rule and its source for dkms (root)
# make uninstall uninstall-module    remove what these have put there
# make clean      remove what was built
# make help       this list
#
# One makefile, no recursion; dependencies come from the compiler (-MMD).
# CFLAGS, CPPFLAGS, LDFLAGS, CC are yours; what the code needs is in ALL_*.
# O=dir builds elsewhere; V=1 shows commands; WERROR=1; DEPS=no; PMIX=no;
# SANITIZE=address,undefined; STEP=name runs that step of the tests only;
# TIDY_NODES=225000 lets clang-tidy look longer

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
# The tree may lie anywhere; names of targets, which $(O) begins, hold no blank.
ifneq ($(words $(O)),1)
$(error O=$(O): make cannot build in a folder with a blank in its name)
endif
# A word for the shell, whatever is in it; and what sed puts in place of @NAME@
# between the single quotes of a script.
as_word = '$(subst ','\'',$(1))'
to = $(call as_word,$(DESTDIR)$(1))
plain = $(subst ','\'',$(subst |,\|,$(subst &,\&,$(subst \,\\,$(1)))))
quoted = $(call plain,$(subst ','\'',$(1)))
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

# What libjia needs, and what it can do without: auth=aead is libsodium's.
PKG_CONFIG ?= pkg-config
ifneq ($(shell $(PKG_CONFIG) --exists libsodium 2> /dev/null && echo yes),)
CODE_CPPFLAGS += -DSUL_SODIUM $(shell $(PKG_CONFIG) --cflags libsodium)
sodium := $(shell $(PKG_CONFIG) --libs libsodium)
endif
LIBS := -lsigsegv $(sodium)
# The programs of apps/ write pictures as PNG where there is libpng, else PPM.
ifneq ($(shell $(PKG_CONFIG) --exists libpng 2> /dev/null && echo yes),)
CODE_CPPFLAGS += -DAPP_PNG $(shell $(PKG_CONFIG) --cflags libpng)
png := $(shell $(PKG_CONFIG) --libs libpng)
endif

# Where pmix.h is, if it is; PMIX=no builds without.  Loaded at run time.
pmix := $(if $(filter no,$(PMIX)),-DSUL_WITHOUT_PMIX,$(patsubst -I%,-isystem \
	%,$(shell $(PKG_CONFIG) --cflags-only-I pmix 2> /dev/null)))

# What each folder can see is what the layers allow, and nothing else.
inc_comm  := -Icomm -Ikernel/uapi $(pmix)
inc_dsm   := -Idsm -Icomm -Ikernel/uapi
inc_apps  := -Idsm -Iapps
inc_tools := -Itools -Idsm -Icomm -Ikernel/uapi
inc_kernel := -Ikernel -Ikernel/uapi -Icomm
inc_tests := -Itests -Itests/unit -Itools -Idsm -Icomm -Ikernel/uapi
# Of the module what is pure, too; comm/ comes first: both have a sul.h.
inc_tests/unit := $(inc_tests) -Ikernel
inc_tests/oracle := -Idsm
inc_tests/litmus := -Idsm
inc_tests/misuse := -Idsm
inc_tests/api := -Idsm
inc = $(or $(inc_$(patsubst %/,%,$(dir $*))),$(inc_$(firstword $(subst /, ,$*))))

# A program is a file without '_' in its name; NAME_part.c belongs to NAME.
# bench_*.c belong to the tools that measure; app*.c to the programs of apps/,
# each of which (but hello) is linked with app_dsm.c, app_pthread.c, app_serial.c.
# A folder tests/NAME/ is one program; tests/litmus/ is one for each file.
objs = $(patsubst %.c,$(O)/obj/%.o,$(sort $(wildcard $(1))))
sul_objs  := $(call objs,comm/*.c)
dsm_objs  := $(call objs,dsm/*.c)
backends  := dsm pthread serial
app_objs  := $(call objs,$(filter-out $(backends:%=apps/app_%.c),$(wildcard \
	apps/app.c apps/app_*.c)))
# With them the files of the module that need no kernel.
pure_objs := $(call objs,kernel/sul_pins.c kernel/sul_check.c)
unit_objs := $(call objs,tests/unit/*.c) $(pure_objs)
programs  = $(foreach f,$(wildcard $(1)/*.c),$(if $(findstring _,$(f)),,$(f)))
apps_src  := $(filter-out apps/app.c,$(call programs,apps))
tools_src := $(call programs,tools)
tests_src := $(call programs,tests) $(wildcard tests/litmus/*.c) \
	$(patsubst %/,%.c,$(filter-out $(addprefix tests/,unit/ tools/ litmus/ \
	sim/ bench/ fuzz/),$(sort $(dir $(wildcard tests/*/*.c)))))
kernels := $(patsubst apps/%.c,%,$(filter-out apps/hello.c,$(apps_src)))
variants := $(foreach k,$(kernels),$(k)-pthread $(k)-serial)
apps  := $(apps_src:%.c=$(O)/%) $(variants:%=$(O)/apps/%)
tools := $(tools_src:tools/%.c=$(O)/bin/%)
tests := $(sort $(tests_src:%.c=$(O)/%)) \
	$(if $(wildcard tests/unit/*.c),$(O)/tests/unit/run) $(O)/tests/bench/json
run-tests := $(O)/tests/tools/run-tests
# What programs are compared with; those with MPI are built where there is MPI.
MPICC ?= mpicc
mpi_src := $(wildcard tests/bench/*_mpi.c)
bench_programs := $(O)/tests/bench/mm_threads $(O)/tests/bench/json \
	$(if $(shell command -v $(MPICC)),$(mpi_src:%.c=$(O)/%))

lib := $(O)/lib
jia_so := $(lib)/libjia.so.$(VERSION)
sul_so := $(lib)/libsul.so.$(VERSION)
libs := $(lib)/libsul.a $(lib)/libsul.so $(lib)/libjia.a $(lib)/libjia.so \
	$(lib)/pkgconfig/jia.pc $(O)/include/jia.h $(O)/include/jia_parmacs.h

# Wrappers of the compilers; Fortran where there is a compiler for it.
ifeq ($(origin FC),default)
FC := $(shell command -v gfortran 2> /dev/null)
endif
# The ANL macros; SPLASH's users look for c.m4.SYSTEM.
macros := tools/jia.m4 tools/pthread.m4
libs += $(macros:tools/%=$(O)/share/%)

wrappers := jiacc jiac++ $(if $(FC),jiaf90)
libs += $(wrappers:%=$(O)/bin/%) $(if $(FC),$(lib)/libjiaf.a)

.PHONY: all tests bench bench-net mutants check-mutants check-net deps deps-ci run check lint tidy check-asan check-tsan \
	check-valgrind install clean help FORCE
all: $(libs) $(apps) $(tools)

# --- set up -------------------------------------------------------------------
deps:
	$(Q)tests/tools/deps $(if $(filter no,$(DEPS)),--dry-run) build
deps-ci:
	$(Q)tests/tools/deps $(if $(filter no,$(DEPS)),--dry-run) build ci net kernel
deps-kernel:
	$(Q)tests/tools/deps $(if $(filter no,$(DEPS)),--dry-run) build kernel
.PHONY: deps-kernel check-kernel check-kernel-mutants check-kasan

# --- objects ------------------------------------------------------------------
needs_deps := $(if $(filter run check,$(MAKECMDGOALS)),deps)

# Rewritten when they change, so that other flags mean other objects.
$(O)/flags: FORCE | $(needs_deps)
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CPPFLAGS) $(pmix) $(ALL_CFLAGS) $(LDFLAGS)' | \
		cmp -s - $@ || \
		echo '$(CC) $(ALL_CPPFLAGS) $(pmix) $(ALL_CFLAGS) $(LDFLAGS)' > $@

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
		$(filter %.o,$^) $(LIBS)

$(lib)/%.so: $(lib)/%.so.$(VERSION)
	$(Q)ln -sf $(<F) $(lib)/$*.so.$(SONAME)
	$(Q)ln -sf $*.so.$(SONAME) $@

$(O)/include/%.h: dsm/%.h
	@mkdir -p $(@D)
	$(Q)cp $< $@

# PREFIX and so on of the build tree, and of what gets installed.  A path may hold
# commas, which would part the words of -Wl.
pc = sed -e 's|@prefix@|$(call plain,$(1))|;s|@libdir@|$(call plain,$(2))|' \
	-e 's|@includedir@|$(call plain,$(3))|' \
	-e 's|@version@|$(VERSION)|;s|@rpath@|$(4)|;s|@libs@|$(LIBS)|' \
	dsm/jia.pc.in
$(lib)/pkgconfig/jia.pc: dsm/jia.pc.in Makefile
	@mkdir -p $(@D)
	$(Q)$(call pc,$(abspath $(O)),$(abspath $(lib)),$(abspath \
		$(O)/include),-Xlinker "-rpath=$${libdir}" ) > $@

# The wrappers are one script, which looks at its name.
cc_paths = sed -e 's|@prefix@|$(call quoted,$(1))|' \
	-e 's|@bindir@|$(call quoted,$(2))|;s|@libdir@|$(call quoted,$(3))|' \
	-e 's|@includedir@|$(call quoted,$(4))|;s|@moddir@|$(call quoted,$(5))|' \
	-e 's|@datadir@|$(call quoted,$(6))|' \
	-e 's|@libs@|$(LIBS)|;s|@version@|$(VERSION)|' tools/jiacc.in
$(O)/bin/jiacc: tools/jiacc.in Makefile
	@mkdir -p $(@D)
	$(Q)$(call cc_paths,$(abspath $(O)),$(abspath $(O)/bin),$(abspath \
		$(lib)),$(abspath $(O)/include),$(abspath \
		$(O)/include),$(abspath $(O)/share)) > $@
	$(Q)chmod +x $@
$(O)/share/%.m4: tools/%.m4
	@mkdir -p $(@D)
	$(Q)cp $< $@
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
$(foreach b,pthread serial,$(foreach k,$(kernels),$(eval \
	$(call program,$(k)-$(b),$(O)/apps,apps/$(k)))))
$(foreach f,$(tools_src:tools/%.c=%),$(eval $(call program,$(f),$(O)/bin,tools/$(f))))
$(foreach f,$(sort $(tests_src:%.c=%)),$(eval $(call program,$(f),$(O),$(f))))
$(O)/tests/unit/run: $(unit_objs) $(O)/obj/tools/parts.a
$(O)/tests/bench/json: $(call objs,tests/bench/json.c)
$(O)/bin/jiabench $(O)/bin/sulperf: $(call objs,tools/bench_*.c)

# What the unit tests may take of the tools: all but the files with a main().
$(O)/obj/tools/parts.a: $(call objs,tools/*_*.c)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# An archive for each back-end: its main() is taken by a program that has none.
define backend # NAME
$(O)/obj/apps/$(1).a: $(app_objs) $(call objs,apps/app_$(1).c)
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach b,$(backends),$(eval $(call backend,$(b))))

$(apps_src:%.c=$(O)/%): $(O)/obj/apps/dsm.a $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) $(LIBS) $(png) -lm
$(kernels:%=$(O)/apps/%-pthread): $(O)/obj/apps/pthread.a
$(kernels:%=$(O)/apps/%-serial): $(O)/obj/apps/serial.a
$(variants:%=$(O)/apps/%):
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) $(png) -lm

$(tools): $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) $(LIBS) -ljansson -lm

$(tests): $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) $(LIBS) -lcunit -ljansson -lm

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
	$(link) $(LIBS) -lm
$(oracles): $(call objs,tests/oracle/*.c) $(lib)/libjia.a
	$(call say,LD)
	$(link) $(LIBS)
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
check: deps all tests $(bench_programs) $(if $(sim),mutants)
	$(call run_tests,check)
check-mutants: all tests mutants
	$(call run_tests,mutants)
check-net: all tests
	$(call run_tests,net)

check-kernel: all tests
	$(call run_tests,kernel)
check-kernel-mutants: all tests
	$(call run_tests,kernel-mutants)
# tests/kernel/README.md says how to come to such a kernel.
check-kasan: all tests
	$(if $(and $(KERNEL),$(KDIR)),,$(error KERNEL=image KDIR=folder it was built in))
	$(Q)KERNEL='$(KERNEL)' KDIR='$(KDIR)' O=$(O) CC='$(CC)' $(run-tests) \
		--tag kasan $(if $(STEP),--step $(STEP)) --log $(O)/tests/log tests/steps

# --- what it costs ------------------------------------------------------------
$(O)/tests/bench/mm_threads: $(call objs,tests/bench/mm_threads.c)
	@mkdir -p $(@D)
	$(call say,LD)
	$(link)
$(mpi_src:%.c=$(O)/%): $(O)/%: %.c Makefile $(O)/flags
	@mkdir -p $(@D)
	$(call say,MPI)
	$(Q)$(MPICC) $(CODE_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< -lm
bench: all $(bench_programs)
	$(O)/bin/jiabench --np=2,4,8 --hardware --count
	O=$(O) tests/bench/run
	O=$(O) tests/bench/kernels $(if $(ROUNDS),-R $(ROUNDS)) \
		--json $(O)/kernels.json --plot $(O)/kernels.svg $(KERNELS)
bench-net: all
	O=$(O) tests/net/bench

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
sanitize-tsan: $(O)/tests/unit/run $(run-tests)
	$(call run_tests,tsan)

# --- fuzzing: each tests/fuzz/NAME.c is a libFuzzer target --------------------
fuzzers := $(patsubst %.c,$(O)/%,$(wildcard tests/fuzz/*.c))
$(fuzzers): $(O)/%: $(O)/obj/%.o $(O)/obj/tools/parts.a $(lib)/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(link) $(LIBS) -ljansson -lm -fsanitize=fuzzer
check-fuzz:
	$(Q)$(MAKE) O=$(O)-fuzz CC=clang sanitize-fuzz \
		SANITIZE=fuzzer-no-link,address,undefined
.PHONY: check-fuzz sanitize-fuzz
sanitize-fuzz: $(fuzzers) $(run-tests)
	$(call run_tests,fuzz)

# --- clang-tidy: a stamp per file ---------------------------------------------
# Nearly all of its time goes to the analyzer's walk through the paths of a function,
# which ends at so many nodes, or at 225,000 if nobody says how many.  With these it
# sees the same blocks of code (clang --analyze, checker debug.Stats; eight files from
# all folders were compared) and gives up a little more often, in a sixth of the time.
TIDY_NODES ?= 30000
tidy_src := $(filter-out $(mpi_src),$(wildcard \
	comm/*.c dsm/*.c apps/*.c tools/*.c tests/*.c tests/*/*.c)) \
	kernel/sul_pins.c kernel/sul_check.c
tidy: $(tidy_src:%.c=$(O)/tidy/%)
$(O)/tidy/%: %.c .clang-tidy apps/.clang-tidy tests/.clang-tidy $(wildcard */*.h */*.def kernel/uapi/*.h)
	@mkdir -p $(@D)
	$(call say,TIDY)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- -std=gnu11 \
		$(CODE_CPPFLAGS) $(inc) -Xclang -analyzer-config -Xclang \
		max-nodes=$(TIDY_NODES) >$@.out 2>&1 || \
		{ grep -E '(error|warning): ' $@.out || cat $@.out; exit 1; }
	@touch $@

# --- install ------------------------------------------------------------------
# sul.4 comes with the module.
man := $(filter-out doc/sul.4,$(wildcard doc/*.[1-8]))
# The names of a page; all but the file's own become links to it.
man_names = awk '/^\.Sh/ { on = $$2 == "NAME" } on && $$1 == ".Nm" { print $$2 }'
install: all
	$(INSTALL) -d $(call to,$(BINDIR)) $(call to,$(LIBDIR))/pkgconfig \
		$(call to,$(INCDIR)) $(call to,$(MANDIR))/man1 \
		$(call to,$(MANDIR))/man3 $(call to,$(MANDIR))/man7
	$(if $(tools),$(INSTALL) $(tools) $(call to,$(BINDIR)))
	$(INSTALL) -m 644 $(lib)/libjia.a $(lib)/libsul.a $(jia_so) $(sul_so) \
		$(call to,$(LIBDIR))
	for l in libjia libsul; do \
		cp -P $(lib)/$$l.so $(lib)/$$l.so.$(SONAME) \
			$(call to,$(LIBDIR)) || exit; done
	$(INSTALL) -m 644 dsm/jia.h dsm/jia_parmacs.h $(call to,$(INCDIR))
	$(call cc_paths,$(PREFIX),$(BINDIR),$(LIBDIR),$(INCDIR),$(MODDIR),$(DATADIR)) > \
		$(call to,$(BINDIR))/jiacc
	chmod 755 $(call to,$(BINDIR))/jiacc
	for w in $(filter-out jiacc,$(wrappers)); do \
		ln -sf jiacc $(call to,$(BINDIR))/$$w || exit; done
	$(if $(FC),$(INSTALL) -d $(call to,$(MODDIR)))
	$(if $(FC),$(INSTALL) -m 644 $(O)/include/jia.mod $(call to,$(MODDIR)))
	$(if $(FC),$(INSTALL) -m 644 $(lib)/libjiaf.a $(call to,$(LIBDIR)))
	$(INSTALL) -d $(call to,$(DATADIR)) $(call to,$(DOCDIR))/examples
	$(INSTALL) -m 644 dsm/jia.f90 tools/jia.gdb $(macros) $(call to,$(DATADIR))
	ln -sf jia.m4 $(call to,$(DATADIR))/c.m4.jia
	$(INSTALL) -m 644 $(wildcard doc/examples/*) $(call to,$(DOCDIR))/examples
	$(call pc,$(PREFIX),$(LIBDIR),$(INCDIR)) > \
		$(call to,$(LIBDIR))/pkgconfig/jia.pc
	for m in $(man); do \
		s=$${m##*.} dir=$(call to,$(MANDIR))/man$${m##*.}; \
		$(INSTALL) -m 644 $$m "$$dir" || exit; \
		for n in $$($(man_names) $$m); do \
			[ -e doc/$$n.$$s ] || echo ".so man$$s/$${m##*/}" \
				> "$$dir"/$$n.$$s || exit; \
		done; \
	done

# --- the kernel module --------------------------------------------------------
# Its source is put together in $(O)/kernel, and built there by the kernel's own
# makefiles; the same files are what dkms gets.  KVER: of the running kernel if its
# headers are here, else the newest whose are.
KVER ?= $(notdir $(patsubst %/build,%,$(or $(wildcard /lib/modules/$(shell \
	uname -r)/build),$(shell ls -d /lib/modules/*/build 2> /dev/null | \
	sort -V | tail -n 1))))
KDIR ?= /lib/modules/$(KVER)/build
KMODDIR ?= /lib/modules/$(KVER)/updates
UDEVDIR ?= /lib/udev/rules.d
module_pure := $(wildcard comm/sul_pure.h $(foreach n,wire mac nh path engine \
	memory net,comm/sul_$(n).[ch] comm/sul_$(n).def comm/sul_$(n)_*.[ch]))
module_files := $(patsubst kernel/%,%,$(wildcard kernel/Kbuild kernel/*.[ch] \
	kernel/*.def kernel/uapi/*)) $(module_pure)
module_src := $(module_files:%=$(O)/kernel/%)
$(O)/kernel/comm/%: comm/%
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(O)/kernel/%: kernel/%
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(O)/kernel/sul.ko: $(module_src) FORCE
	$(if $(word 2,$(abspath $(O))),$(error the makefiles of the kernel cannot \
		build in a folder with a blank in its name: say O=/some/where))
	@[ -d $(KDIR) ] || { echo "no headers of a kernel at $(KDIR): say" \
		"KVER= or KDIR=, or install linux-headers"; exit 1; }
	$(Q)$(MAKE) $(if $(V),,-s) -C $(KDIR) M=$(abspath $(O)/kernel) \
		$(if $(WERROR),KCFLAGS=-Werror) $(foreach v,$(module_vars),$(if \
		$($(v)),$(v)='$($(v))')) $(module_btf) modules
# Our O, CC and the like are not the kernel's.
$(O)/kernel/sul.ko: MAKEOVERRIDES :=
# Types for BPF are left out where the tool for them is not there.
module_btf = $(if $(shell command -v pahole),,CONFIG_DEBUG_INFO_BTF_MODULES=)
module_vars := W C CF ARCH CROSS_COMPILE LLVM SUL_MUTANT
module: $(O)/kernel/sul.ko

# As root: the module for KVER, its udev rule, and with it the source for dkms:
# `dkms add sul/$(VERSION)`.  Who may use /dev/sul is in the group sul.
SRCDIR ?= /usr/src
module_dkms := $(SRCDIR)/sul-$(VERSION)
install-module: module
	$(INSTALL) -d $(call to,$(KMODDIR)) $(call to,$(UDEVDIR)) \
		$(call to,$(MANDIR))/man4 $(call to,$(module_dkms)) \
		$(call to,$(INCDIR)) $(call to,$(DOCDIR))
	$(INSTALL) -m 644 $(O)/kernel/sul.ko $(call to,$(KMODDIR))
	$(INSTALL) -m 644 kernel/60-sul.rules $(call to,$(UDEVDIR))
	$(INSTALL) -m 644 doc/sul.4 $(call to,$(MANDIR))/man4
	$(INSTALL) -m 644 kernel/uapi/sul_abi.h kernel/uapi/sul_counter.def \
		$(call to,$(INCDIR))
	$(INSTALL) -m 644 doc/semi-user-level.md $(call to,$(DOCDIR))
	for f in $(module_files); do \
		$(INSTALL) -D -m 644 $(O)/kernel/$$f \
			$(call to,$(module_dkms))/$$f || exit; done
	sed 's|@version@|$(VERSION)|' kernel/dkms.conf.in > \
		$(call to,$(module_dkms))/dkms.conf
	$(if $(DESTDIR),,getent group sul > /dev/null || groupadd --system sul)
	$(if $(DESTDIR),,depmod $(KVER))
.PHONY: module install-module

# What is to go is found by installing it once more, to an empty place.  Of folders
# those go that are ours alone, and empty then.
uninstall: what := install
uninstall-module: what := install-module
uninstall uninstall-module:
	$(Q)new=$$(mktemp -d) && trap 'rm -rf "$$new"' EXIT && \
	$(MAKE) -s $(what) DESTDIR="$$new" > /dev/null && cd $(call to,/) && \
	(cd "$$new" && find . ! -type d -print0) | xargs -0 rm -f && \
	(cd "$$new" && find . -depth -type d -regextype posix-extended \
		-regex '.*/(share|doc|lib|src)/(dajia|jia|sul-[^/]*)(/.*)?' \
		-print0) | \
		{ xargs -0 rmdir --ignore-fail-on-non-empty 2> /dev/null; true; }
	$(if $(DESTDIR),,$(if $(filter %-module,$@),depmod $(KVER)))
.PHONY: uninstall uninstall-module

clean:
	rm -rf $(O) $(O)-asan $(O)-tsan $(O)-fuzz

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' $(firstword $(MAKEFILE_LIST))

.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(O)/obj $(O)/mutants -name '*.d' 2>/dev/null)
