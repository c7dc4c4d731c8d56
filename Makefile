# linkpool: build, test, install. `make help` lists the targets. Objects go to BUILD/KIND/, where KIND is release (what
# is installed), debug (the checker runs), asan (the checker and the sanitizers) or cover (debug, counted by gcov).
KIND    ?= release
BUILD   ?= build
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
B        = $(BUILD)/$(KIND)
VERSION  = 0.1.0
MAKEFLAGS += --no-print-directory
JOBS     = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc)) # of what is built below a target; tests run alone

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Werror
FLAGS_release = -DNDEBUG
FLAGS_debug   = -DLINKPOOL_CHECK
FLAGS_asan    = -DLINKPOOL_CHECK -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_cover   = -DLINKPOOL_CHECK -O0 --coverage
OURS     = -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Iinclude -I. -fPIC -fno-semantic-interposition -MMD -MP \
           $(WARNINGS) $(FLAGS_$(KIND))
LINK     = $(CC) $(CFLAGS) $(FLAGS_$(KIND)) $(LDFLAGS)
LIBS     = -lev -lm
# Without it Criterion counts a leak as passed.
export ASAN_OPTIONS ?= abort_on_error=1

objects  = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
OBJECTS  = $(call objects,backoff/*.c link/*.c link/testing/*.c pool/*.c)
SUITES   = $(foreach suite,unit conformance matrix message figures faults,$(if $(wildcard tests/$(suite)/*.c),$(suite)))
EXAMPLES = $(sort $(filter-out %_core %_test,$(patsubst examples/%.c,%,$(wildcard examples/*.c))) \
             $(patsubst examples/%/main.c,%,$(wildcard examples/*/main.c)))
EXAMPLE_TESTS = $(patsubst examples/%.c,%,$(wildcard examples/*_test.c))
BENCHES  = $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/*.c))

all: lib examples ## the library and the examples
lib: $(B)/liblinkpool.a $(B)/liblinkpool.so
examples: $(EXAMPLES:%=$(B)/%)

# ---- the library ----

# Criterion's assertions convert bit-fields within their macros: tests alone go without -Wconversion.
$(B)/tests/%.o $(B)/examples/%_test.o: WARNINGS += -Wno-conversion -Wno-sign-conversion

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC $@"
	@$(CC) $(CFLAGS) $(OURS) -c $< -o $@

# Only public symbols, which all begin with linkpool_, leave the library. Tests use internals too: the archives that
# they link keep theirs.
$(B)/whole.o: $(OBJECTS)
	@$(LD) -r $^ -o $@
	@objcopy --wildcard --keep-global-symbol='linkpool_*' $@
$(B)/liblinkpool.a: $(if $(filter release,$(KIND)),$(B)/whole.o,$(OBJECTS))
	@echo "  AR $@"
	@rm -f $@
	@$(AR) rcs $@ $^
$(B)/liblinkpool.so: $(OBJECTS) include/linkpool.map
	@echo "  LD $@.0"
	@$(LINK) -shared -Wl,-soname,liblinkpool.so.0 -Wl,--version-script=include/linkpool.map $(OBJECTS) $(LIBS) -o $@.0
	@ln -sf liblinkpool.so.0 $@

# ---- the examples: what they share is an archive, with llhttp where the system has it as sources only ----

ifneq ($(shell pkg-config --exists libllhttp 2>/dev/null && echo yes),)
LIBS_examples = $(shell pkg-config --libs libllhttp)
else
LLHTTP   = $(patsubst /usr/share/llhttp/%.c,$(B)/llhttp/%.o,$(wildcard /usr/share/llhttp/*.c))
$(B)/examples/%.o $(B)/tests/proxy/%.o $(B)/tests/message/%.o $(B)/tests/figures/%.o $(B)/tests/fuzz/%.o: OURS += -isystem /usr/share/include/llhttp
endif
$(B)/llhttp/%.o: /usr/share/llhttp/%.c
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) $(FLAGS_$(KIND)) -w -isystem /usr/share/include/llhttp -c $< -o $@
$(B)/libexamples.a: $(call objects,examples/common/*.c examples/*_core.c examples/lbproxy/message/*.c) $(LLHTTP)
	@rm -f $@
	@$(AR) rcs $@ $^
$(B)/framed_server: $(B)/tests/fakes/framed_server.o
.SECONDEXPANSION:
$(EXAMPLES:%=$(B)/%) $(EXAMPLE_TESTS:%=$(B)/%): $(B)/%: $$(call objects,examples/$$*.c examples/$$*/*.c) \
        $(B)/libexamples.a $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $^ $(if $(filter %_test,$@),-lcriterion) $(if $(filter %/lbproxy,$@),-lmicrohttpd) $(LIBS_examples) $(LIBS) -pthread -o $@

# ---- tests: `make unit` runs them with the checker, `make unit KIND=asan` under the sanitizers ----

TEST_KIND = $(KIND:release=debug)
LBPROXY  = $(filter-out %/main.o,$(call objects,examples/lbproxy/*.c)) # what the suite of its figures links
$(SUITES:%=$(B)/%) $(B)/controls: $(B)/%: $$(call objects,tests/$$*/*.c tests/fakes/*.c) \
        $$(if $$(filter figures,$$*),$(LBPROXY)) $$(if $$(filter message figures,$$*),$(B)/libexamples.a) \
        $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $^ -lcriterion $(if $(filter figures,$*),-lmicrohttpd) $(LIBS_examples) $(LIBS) -pthread -o $@
$(BENCHES:%=$(B)/bench/%): $(B)/bench/%: $(B)/tests/bench/%.o $$(call objects,tests/bench/$$*/*.c) $(B)/liblinkpool.a
	@mkdir -p $(@D)
	@$(LINK) $^ $(LIBS) -o $@

$(SUITES:%=run-%) $(EXAMPLE_TESTS:%=run-%): run-%: $(B)/%
	timeout 300 $(B)/$*
run-outside: STAGE = $(abspath $(BUILD)/stage/$(KIND))
run-outside: lib
	@rm -rf $(STAGE)
	@$(MAKE) -s KIND=$(KIND) install PREFIX=/usr DESTDIR=$(STAGE) >/dev/null
	CC="$(CC)" CFLAGS="$(CFLAGS) $(filter -fsanitize% -fno-sanitize%,$(FLAGS_$(KIND)))" tests/outside.sh $(STAGE)
run-ids: $(B)/conformance
	tests/ids.sh $<
run-cases: $(B)/conformance
	tests/cases.sh $<

unit: ## unit tests of each room
conformance: ## a test for each reference behaviour
figures: ## the access log and the status pages of lbproxy
matrix: ## every public function from every callback
outside: ## a protocol, a transport and a pool_free() from outside the tree, against what is installed
ids: ## the reference behaviours by id: which test, passed or failed
cases: ## all that is promised by id, other libraries' faults among it: which test, passed or failed
unit conformance matrix figures outside ids cases:
	@$(MAKE) $(JOBS) KIND=$(TEST_KIND) run-$@

TESTS = $(SUITES) $(EXAMPLE_TESTS)
tests: ## all that `test` and `bench` run, built only
	@$(MAKE) $(JOBS) KIND=release all $(BENCHES:%=$(BUILD)/release/bench/%)
	@$(MAKE) $(JOBS) KIND=debug $(TESTS:%=$(BUILD)/debug/%) $(REPLAYS:$(B)/%=$(BUILD)/debug/%) $(BUILD)/debug/sim $(BUILD)/debug/sim_seam
test: ## all tests, in under 3 minutes; installs what is missing
	@tests/deps.sh build test
	@$(MAKE) tests
	@for test in $(TESTS) replays framed outside; do $(MAKE) KIND=debug run-$$test || exit 1; done
REPLAYS_message = $(B)/replay_request $(B)/replay_answer
REPLAYS  = $(REPLAYS_message) $(B)/replay_frame $(B)/replay_calls
$(REPLAYS_message): $(B)/replay_%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o \
        $(call objects,$(addprefix tests/message/,driver.c check.c oracle.c)) $(B)/libexamples.a
	@$(LINK) $^ $(LIBS_examples) -o $@
$(B)/replay_frame $(B)/replay_calls: $(B)/replay_%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o \
        $(B)/tests/fakes/framed_server.o $(B)/liblinkpool.a
	@$(LINK) $^ $(LIBS) -o $@
run-replays: $(REPLAYS)
	$(B)/replay_frame tests/fuzz/corpus/frame/*
	$(B)/replay_calls tests/fuzz/corpus/calls/*
	$(B)/replay_request tests/fuzz/corpus/request/*
	$(B)/replay_answer tests/fuzz/corpus/answer/*
$(B)/framed_client: $(B)/tests/framed/client.o $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $^ $(LIBS) -o $@
run-framed: $(B)/framed_server $(B)/framed_client $(B)/framed_fanout $(B)/lineproto
	tests/framed/run.py $(B)
framed: ## framed links, both sides before a second implementation of their wire form; framed_fanout, lineproto
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=$(TEST_KIND) run-framed
$(B)/adders: $(B)/tests/framed/adders.o $(B)/liblinkpool.a
$(B)/add_server: $(B)/tests/framed/add_server.o $(B)/tests/fakes/framed_server.o $(B)/libexamples.a
$(B)/adders $(B)/add_server:
	@echo "  LD $@"
	@$(LINK) $^ $(LIBS) -o $@
run-killed: $(B)/add_server $(B)/adders
	tests/framed/killed.py $(B)
killed: ## 64 callers that add by call id, while their server is killed and started again 20 times
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=$(TEST_KIND) run-killed
FUZZ_SECONDS ?= 60
fuzz: ## what lbproxy and framed links parse and write, FUZZ_SECONDS a target, then planted faults, each found in a minute
	@tests/deps.sh build check
	tests/fuzz/run.sh $(FUZZ_SECONDS) $(BUILD)/fuzz
	tests/fuzz/planted.sh $(BUILD)/fuzz-controls
STORM    = $(B)/storm_client $(B)/storm_backend
$(B)/stream $(B)/http_stream: $(B)/%: $(B)/tests/proxy/%.o $(B)/libexamples.a
	@echo "  LD $@"
	@$(LINK) $^ -o $@
$(B)/storm_client: $(call objects,$(addprefix tests/proxy/storm/,client.c ask.c heard.c plan.c))
$(B)/storm_backend: $(call objects,$(addprefix tests/proxy/storm/,backend.c arrival.c script.c plan.c))
$(STORM): $(B)/libexamples.a
	@echo "  LD $@"
	@$(LINK) $(filter %.o,$^) $(B)/libexamples.a $(LIBS_examples) $(LIBS) -o $@
run-proxy: examples $(B)/stream $(B)/http_stream $(STORM)
	tests/proxy/http/run.py $(B)
	tests/proxy/run.sh $(B)
$(B)/preload.so: tests/faults/preload/preload.c
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(CFLAGS) -std=c11 $(WARNINGS) -fPIC -shared $(LDFLAGS) $< -o $@
run-faults-real: $(B)/lbproxy $(B)/backend $(B)/preload.so
	tests/faults/preload.sh $(B)
faults-real: ## lbproxy while the kernel refuses it one call or another
	@tests/deps.sh build proxy
	@$(MAKE) $(JOBS) KIND=$(TEST_KIND) run-faults-real
run-storm: examples $(STORM)
	tests/proxy/storm/storm.sh $(B) --requests 200000
storm-proxy: ## 200,000 requests through lbproxy while its backends die, stall and answer twice
	@tests/deps.sh build
	@$(MAKE) $(JOBS) run-storm
STORM_SIM = $(B)/sim_storm $(B)/sim_storm_picture
$(B)/sim_storm: $(call objects,$(addprefix tests/sim/storm/,main.c cases.c storm.c))
$(B)/sim_storm_picture: $(call objects,$(addprefix tests/sim/storm/,picture.c storm.c))
$(STORM_SIM): $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $(filter %.o,$^) $(B)/liblinkpool.a $(LIBS) -o $@
run-sim-storm: $(B)/sim_storm
	$(B)/sim_storm
storm: ## 10,000 links lose their server at once, in virtual time: figures and gates
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=release run-sim-storm
$(B)/sim: $(call objects,tests/sim/*.c tests/fakes/framed_server.c) $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $^ $(LIBS) -o $@
SEEDS   ?= 4000
COMMIT   = $(shell git rev-parse --short=7 HEAD 2>/dev/null || echo 1)
run-sim: $(B)/sim
	$(B)/sim --from $$((0x$(COMMIT))) --count $(SEEDS) --jobs $(shell nproc) --kept tests/sim/seeds.txt
sim: ## SEEDS games of a simulated network, from a seed that the commit draws, and the kept ones
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=debug run-sim
sim-controls: ## planted faults, each found by a game, a scenario of the seam or a failure in turn; and the same games
	@tests/deps.sh build check
	@for program in sim sim_seam faults; do tests/planted.sh $(BUILD)/planted/$$program $$program || exit 1; done
	tests/sim/compilers.sh $(BUILD)/sim-compilers # under gcc and clang
$(B)/sim_seam: $(call objects,tests/sim/seam/*.c tests/fakes/session.c tests/fakes/shared.c) $(B)/liblinkpool.a
	@echo "  LD $@"
	@$(LINK) $^ $(LIBS) -o $@
run-seam: $(B)/sim_seam
	$(B)/sim_seam
seam: ## each scenario in virtual time and on libev with real descriptors, under a clock of ours: the same is told
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=debug run-seam
proxy: ## lbproxy before nginx, redis, node, apache2 and python, with curl, wrk, ab, hey and redis-benchmark
	@tests/deps.sh build proxy
	@$(MAKE) $(JOBS) run-proxy
controls: ## planted faults: each must turn its run red
	@$(MAKE) $(JOBS) KIND=asan $(BUILD)/asan/controls
	@$(MAKE) $(JOBS) KIND=debug $(BUILD)/debug/controls
	tests/controls.sh $(BUILD)/asan/controls $(BUILD)/debug/controls
	tests/cases_controls.sh
	@$(MAKE) $(JOBS) KIND=debug $(BUILD)/debug/adders $(BUILD)/debug/add_server
	tests/framed/killed.py $(BUILD)/debug --controls
CORE_SUITES = $(filter-out message figures faults,$(SUITES))
# Under valgrind a test takes a second more: those of arithmetic, of the system and of the testing kit go without.
CORE_TESTS = !(address|backoff|error|env|driver_ev|testing_*|cases|framed_*|heartbeat|pool_heartbeat)/*
check: controls ## the tests under the sanitizers, the core's under valgrind
	@$(MAKE) $(JOBS) KIND=asan lib $(TESTS:%=$(BUILD)/asan/%)
	@for test in $(TESTS) replays framed outside; do $(MAKE) KIND=asan run-$$test || exit 1; done
	@$(MAKE) $(JOBS) KIND=asan run-sim SEEDS=200
	@$(MAKE) $(JOBS) KIND=asan run-seam
	@$(MAKE) $(JOBS) KIND=debug $(CORE_SUITES:%=$(BUILD)/debug/%)
	for suite in $(CORE_SUITES); do tests/valgrind.sh $(BUILD)/debug/$$suite --filter '$(CORE_TESTS)' || exit 1; done
verify-ids: ## one change of the library's source an id must turn its test red
	tests/verify-ids.sh $(BUILD)/verify
cover: ## lines and branches of the library that the tests reach
	@$(MAKE) $(JOBS) KIND=cover $(SUITES:%=$(BUILD)/cover/%)
	tests/cover.sh $(BUILD)/cover $(SUITES)
	tests/branches.sh $(BUILD)/cover
	tests/faults/sites.sh $(BUILD)/cover
lint: ## what readers find: layout, clang-tidy, cppcheck, headers alone, symbols, imports, rooms, rules, README
	@$(MAKE) $(JOBS) KIND=release lib
	tests/lint/run $(BUILD)/release
bench: ## what acquire and release cost, beside the floor
	@tests/deps.sh build bench
	@$(MAKE) $(JOBS) KIND=release $(BENCHES:%=$(BUILD)/release/bench/%)
	tests/bench/quiet.sh $(BUILD)/release/bench/acquire
	@for bench in $(BENCHES); do $(BUILD)/release/bench/$$bench || exit 1; done
$(B)/bench/origin: $(B)/tests/bench/proxy/origin.o
	@mkdir -p $(@D)
	@$(LINK) $^ -o $@
run-bench-proxy: $(B)/lbproxy $(B)/bench/origin
	tests/bench/proxy/run.py $(B) $(BENCH_PROXY)
bench-proxy: ## lbproxy beside nginx and haproxy, 10 quiet minutes; BENCH_PROXY="--rounds 1 --clients 64" for less
	@tests/deps.sh build bench-proxy
	@$(MAKE) $(JOBS) KIND=release run-bench-proxy
$(B)/states: $(B)/tests/docs/states.o $(B)/link/fsm.o
	@$(LINK) $^ -o $@
run-docs: $(B)/states $(B)/sim_storm_picture
	$(B)/states >docs/states.md
	$(B)/sim_storm_picture >$(B)/storm.svg
	@mv $(B)/storm.svg docs/storm.svg
docs: ## docs/states.md from the table of states, docs/storm.svg from the storms, and the manual pages as text in BUILD/docs
	@$(MAKE) run-docs
	@mkdir -p $(BUILD)/docs
	@for page in $(notdir $(wildcard docs/*.[1-8])); do \
	    groff -man -Tutf8 -ww docs/$$page >$(BUILD)/docs/$$page.txt && echo $(BUILD)/docs/$$page.txt || exit 1; done
demo: ## three backends, lbproxy and real requests, one backend killed; installs what is missing
	@tests/deps.sh build
	@$(MAKE) $(JOBS) KIND=release all
	examples/demo.sh $(BUILD)/release

# ---- install ----

INCLUDES = $(DESTDIR)$(PREFIX)/include/linkpool
install: lib ## the library, its headers and the page of the wire form to PREFIX, under DESTDIR
	mkdir -p $(INCLUDES) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(MANDIR)/man7
	install -m 644 include/linkpool/*.h $(INCLUDES)
	install -m 644 $(B)/liblinkpool.a $(B)/liblinkpool.so.0 $(DESTDIR)$(LIBDIR)
	ln -sf liblinkpool.so.0 $(DESTDIR)$(LIBDIR)/liblinkpool.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|; s|@VERSION@|$(VERSION)|' include/linkpool.pc.in \
	    > $(DESTDIR)$(LIBDIR)/pkgconfig/linkpool.pc
	install -m 644 docs/linkpool-framed.7 $(DESTDIR)$(MANDIR)/man7
uninstall: ## what install put there
	rm -rf $(INCLUDES)
	rm -f $(DESTDIR)$(LIBDIR)/liblinkpool.* $(DESTDIR)$(LIBDIR)/pkgconfig/linkpool.pc \
	    $(DESTDIR)$(MANDIR)/man7/linkpool-framed.7
clean: ## all that was built
	rm -rf $(BUILD)
help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: faults-real run-faults-real all lib examples bench-proxy run-bench-proxy proxy run-proxy storm-proxy run-storm storm run-sim-storm sim run-sim sim-controls seam run-seam run-docs tests $(SUITES) outside ids cases run-cases test controls check verify-ids cover lint bench docs demo install uninstall \
        clean help $(SUITES:%=run-%) $(EXAMPLE_TESTS:%=run-%) run-outside run-ids fuzz run-replays framed run-framed killed run-killed
-include $(shell find $(B) -name '*.d' 2>/dev/null)
