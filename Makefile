# quintain. Targets: all run test deps install clean check format docs fuzz test-guest;
# libs (the archives), unit-FLOOR (build and run the unit tests of one floor).
# Variables: BUILD=build CC=gcc|clang SANITIZE=address,undefined|thread
#            DESTDIR prefix sysconfdir FUZZ_SECONDS=60 CRASH_POINTS=100000
#            V=1 (shows the commands)

BUILD ?= build
prefix ?= /usr/local
sysconfdir ?= /etc
bindir ?= $(prefix)/bin
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/quintain
unitdir ?= $(prefix)/lib/systemd/system
FUZZ_SECONDS ?= 60
CRASH_POINTS ?= 100000

# The floors of the house (docs/ARCHITECTURE.md): the folder of each, and what
# it links with, from the top down.
dir_base      = base
dir_compress  = compress
dir_volume    = backing/volume
dir_backing   = backing
dir_scsi      = target/scsi
dir_iscsi     = target/iscsi
dir_config    = config
dir_bench     = bench
dir_target    = target
uses_base     = base
uses_compress = compress $(uses_base)
uses_volume   = volume $(uses_compress)
uses_backing  = backing $(uses_volume)
uses_scsi     = scsi $(uses_backing)
uses_iscsi    = iscsi $(uses_scsi)
uses_config   = config $(uses_iscsi)
uses_bench    = bench $(uses_iscsi)
uses_target   = target config bench $(uses_iscsi)
floors        = $(uses_target)
archives      = $(patsubst %,$(BUILD)/%.a,$(uses_$(1)))
objects       = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

packages = liburing jansson libcrypto zlib libdeflate libisal liblz4 libzstd libxxhash
warnings = -Wall -Wextra -Wshadow -Wmissing-prototypes -Wvla -Werror
sanitize = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CFLAGS ?= -O2 -g $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
compile = $(CC) -std=c17 -D_GNU_SOURCE $(CFLAGS) $(warnings) $(sanitize) -pthread \
	-I. -I$(BUILD)/gen -include base/banned.h \
	$(shell pkg-config --cflags $(packages) 2>/dev/null)
link = $(CC) $(CFLAGS) $(sanitize) -Wl,--as-needed,-z,relro,-z,now $(LDFLAGS) -pthread
LIBS = $(shell pkg-config --libs $(packages) 2>/dev/null) $(LDLIBS)
compile := $(compile)
LIBS := $(LIBS)

say = $(if $(V),,@echo "  $(1) $(2)";)

all: libs $(BUILD)/quintain
libs: $(call archives,target)
.PHONY: all libs run test deps install clean check format docs fuzz test-guest test-crash bench-engine test-threads tests fuzzers FORCE
.DELETE_ON_ERROR:
.SECONDARY:

# Objects and archives. A change of compiler or flags rebuilds all of them; a
# new version only what includes "version.h" (QUINTAIN_VERSION).
version = $(or $(shell git describe --dirty --match 'v[0-9]*' 2>/dev/null),$(shell cat VERSION))
update = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' >$@
$(BUILD)/flags: FORCE
	$(call update,$(compile))
$(BUILD)/gen/version.h: FORCE
	$(call update,#define QUINTAIN_VERSION "$(version:v%=%)")

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/gen/version.h
	@mkdir -p $(@D)
	$(call say,CC,$<) $(compile) -MMD -MP -c -o $@ $<

define archive
$(BUILD)/$(1).a: $(call objects,$(filter-out target/main.c,$(wildcard $(dir_$(1))/*.c)))
	@mkdir -p $$(@D); rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach f,$(floors),$(eval $(call archive,$(f))))

$(BUILD)/quintain: $(BUILD)/obj/target/main.o $(call archives,target)
	$(call say,LD,$@) $(link) -o $@ $^ $(LIBS)

# Tests. tests/unit/FLOOR/test_X.c is a program of its own, linked with its
# floor, those below it, and what else lies in its folder and in tests/unit
# (helpers, fakes). tests/scsi, tests/login and tests/pdu are one program each.
helpers   = $(wildcard tests/unit/*.c)
unit      = $(basename $(wildcard tests/unit/*/test_*.c))
suites    = $(addsuffix suite,$(sort $(dir $(wildcard tests/scsi/*.c tests/login/*.c tests/pdu/*.c))))
crash     = $(BUILD)/tests/crash/suite $(BUILD)/tests/crash/selftest/suite
programs  = $(addprefix $(BUILD)/,$(unit) $(suites)) $(crash)
daemon    = $(filter-out %/lib.sh,$(wildcard tests/it/*.sh))
fuzzer    = $(basename $(wildcard tests/fuzz/fuzz_*.c))

define unit_program
$(BUILD)/$(1): $(call objects,$(1).c $(filter-out $(2)/test_%.c,$(wildcard $(2)/*.c)) $(helpers)) \
		$(call archives,$(notdir $(2)))
endef
$(foreach t,$(unit),$(eval $(call unit_program,$(t),$(patsubst %/,%,$(dir $(t))))))
$(BUILD)/tests/scsi/suite: $(call objects,$(wildcard tests/scsi/*.c) $(helpers)) $(call archives,scsi)
$(BUILD)/tests/login/suite: $(call objects,$(wildcard tests/login/*.c) $(helpers)) $(call archives,iscsi)
$(BUILD)/tests/pdu/suite: $(call objects,$(wildcard tests/pdu/*.c) $(helpers)) $(call archives,iscsi)
# The crash suite (tests/crash), and the test of it with a store of its own.
crash_bed = $(call objects,$(filter-out %/main.c,$(wildcard tests/crash/*.c)))
$(BUILD)/tests/crash/suite: $(call objects,tests/crash/main.c) $(crash_bed) $(call archives,volume)
$(BUILD)/tests/crash/selftest/suite: $(call objects,$(wildcard tests/crash/selftest/*.c)) $(crash_bed) \
		$(call archives,volume)
# Figures of the volume engine alone.
engine_bench = $(BUILD)/tests/bench/engine
$(engine_bench): $(call objects,$(wildcard tests/bench/*.c)) $(call archives,volume)
$(sort $(programs) $(crash) $(engine_bench)):
	@mkdir -p $(@D)
	$(call say,LD,$@) $(link) -o $@ $^ $(LIBS) -lcunit

$(BUILD)/tests/fuzz/fuzz_pool: $(crash_bed)

# A fuzzer is libFuzzer's under "make fuzz"; else it replays its corpus.
$(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(if $(FUZZ),,$(call objects,tests/fuzz/replay.c)) \
		$(call archives,target)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(link) $(if $(FUZZ),-fsanitize=fuzzer) -o $@ $^ $(LIBS)

fuzzers: $(addprefix $(BUILD)/,$(fuzzer))
tests: all $(programs) fuzzers

unit_of = $(filter $(BUILD)/tests/unit/$(1)/%,$(programs))
define unit_target
.PHONY: unit-$(1)
unit-$(1): $(call unit_of,$(1))
	@BUILD=$(BUILD) tests/run $$^
endef
$(foreach f,$(floors),$(eval $(call unit_target,$(f))))

# What builds by itself uses every CPU, unless -j says otherwise.
jobs = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@.ci/deps build test

test: deps
	@$(MAKE) --no-print-directory $(jobs) tests
	@BUILD=$(BUILD) tests/run $(programs) $(addprefix $(BUILD)/,$(fuzzer)) $(daemon)

# What crosses threads, for SANITIZE=thread: the foundation, the iSCSI server
# and the whole daemon.
# Without address randomisation, where that may be turned off: the sanitizer's
# shadow memory may collide with it.
threaded = $(call unit_of,base) $(BUILD)/tests/pdu/suite
test-threads: all $(threaded)
	@BUILD=$(BUILD) $$(setarch -R true 2>/dev/null && echo setarch -R) tests/run $(threaded) $(daemon)

fuzz:
	@.ci/deps build fuzz
	@$(MAKE) --no-print-directory $(jobs) BUILD=$(BUILD)/fuzz CC=clang FUZZ=1 \
		SANITIZE=fuzzer-no-link,address,undefined fuzzers
	@BUILD=$(BUILD)/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(notdir $(fuzzer))

bench-engine: deps
	@$(MAKE) --no-print-directory $(jobs) $(engine_bench)
	@for b in cpu amplification map recovery; do $(engine_bench) $$b || exit 1; done

test-crash: deps
	@$(MAKE) --no-print-directory $(jobs) $(crash)
	@$(BUILD)/tests/crash/suite --mutants
	@$(BUILD)/tests/crash/suite --faults
	@$(BUILD)/tests/crash/suite --soak --seconds 60
	@$(BUILD)/tests/crash/suite --points $(CRASH_POINTS)

test-guest: deps
	@.ci/deps guest qemu
	@$(MAKE) --no-print-directory $(jobs) all
	@tests/guest/boot prepare
	@BUILD=$(BUILD) tests/run tests/guest/cases/*.sh

check:
	@.ci/deps build style
	@$(MAKE) --no-print-directory $(jobs) all
	@BUILD=$(BUILD) tests/run .ci/check-style .ci/check-includes .ci/check-docs

# Pages that are made of option rows; their tests say when they are stale.
docs: $(BUILD)/tests/unit/config/test_manual $(BUILD)/tests/unit/scsi/test_commands
	@for t in $^; do UPDATE_DOCS=1 $$t || exit 1; done

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

run: deps
	@$(MAKE) --no-print-directory $(jobs) all
	@BUILD=$(BUILD) config/run-default

install: all
	install -D -m 755 $(BUILD)/quintain $(DESTDIR)$(bindir)/quintain
	for s in 1 5 8; do for f in docs/*.$$s; do [ ! -e $$f ] || \
		install -D -m 644 -t $(DESTDIR)$(mandir)/man$$s $$f || exit 1; done; done
	install -D -m 644 -t $(DESTDIR)$(docdir) docs/connecting.md
	install -D -m 644 -t $(DESTDIR)$(docdir)/examples config/*.conf config/*.example
	mkdir -p $(DESTDIR)$(unitdir)
	sed 's,@bindir@,$(bindir),; s,@sysconfdir@,$(sysconfdir),' config/quintain.service \
		>$(DESTDIR)$(unitdir)/quintain.service

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
