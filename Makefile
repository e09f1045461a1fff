# make            libraries, tools and programs, all under build/
# make run        set up, build, run the main job and show its verified result
# make check      set up, build, run all tests
# make help       this list
#
# One makefile, no recursion; dependencies come from the compiler (-MMD).
# CFLAGS, CPPFLAGS, LDFLAGS, CC are yours; what the code needs is in ALL_*.
# O=dir builds elsewhere; V=1 shows commands; WERROR=1; SANITIZE=address,undefined

VERSION := 0.1
O       ?= build
CFLAGS  ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
	-Wformat=2 -Wpointer-arith -Wcast-qual -Wwrite-strings
ALL_CPPFLAGS = -D_GNU_SOURCE -MMD -MP $(CPPFLAGS)
ALL_CFLAGS   = -std=gnu11 -pthread -fPIC -fvisibility=hidden $(WARN) $(CFLAGS)
ifdef WERROR
ALL_CFLAGS += -Werror
endif
ifdef SANITIZE
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
endif
ifndef V
Q := @
say = @printf '  %-5s %s\n' $(1) $@
endif

sul_objs  := $(patsubst %.c,$(O)/%.o,$(wildcard comm/*.c))
dsm_objs  := $(patsubst %.c,$(O)/%.o,$(wildcard dsm/*.c))
apps      := $(patsubst apps/%.c,$(O)/apps/%,$(wildcard apps/*.c))
# tools/jiarun_*.c are parts of jiarun; the unit tests take what they test.
jiarun_parts := $(patsubst %.c,$(O)/%.o,$(wildcard tools/jiarun_*.c))
tools     := $(patsubst tools/%.c,$(O)/bin/%,$(filter-out tools/jiarun_%,$(wildcard tools/*.c)))
unit_objs := $(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/*.c)) \
	$(O)/tools/jiarun_json.o

# What each folder can see is what the layers allow, and nothing else.
$(O)/comm/%.o:   inc := -Icomm -Ikernel/uapi
$(O)/dsm/%.o:    inc := -Idsm -Icomm -Ikernel/uapi
$(O)/apps/%.o:   inc := -Idsm -Iapps
$(O)/tools/%.o:  inc := -Itools -Idsm -Icomm -Ikernel/uapi
$(O)/tests/%.o:  inc := -Itests -Itests/unit -Itools -Idsm -Icomm -Ikernel/uapi

.PHONY: all check run clean help
all: $(O)/lib/libsul.a $(O)/lib/libjia.a $(O)/lib/libjia.so $(apps) $(tools)

$(O)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(inc) $(ALL_CFLAGS) -c -o $@ $<

$(O)/lib/libsul.a: $(sul_objs)
	@mkdir -p $(@D)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/lib/libjia.a: $(dsm_objs) $(sul_objs)
	@mkdir -p $(@D)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/lib/libjia.so: $(dsm_objs) $(sul_objs)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) -shared $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lsigsegv

$(O)/apps/%: $(O)/apps/%.o $(O)/lib/libjia.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(O)/lib/libjia.a -lsigsegv -lm

$(O)/bin/jiarun: $(jiarun_parts)
$(O)/bin/%: $(O)/tools/%.o $(O)/lib/libjia.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lsigsegv -ljansson -lm

$(O)/tests/unit/run: $(unit_objs) $(O)/lib/libjia.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lsigsegv -lcunit -ljansson -lm

check: all $(O)/tests/unit/run
	$(Q)$(O)/tests/unit/run

clean:
	rm -rf $(O)

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' $(firstword $(MAKEFILE_LIST))

.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
