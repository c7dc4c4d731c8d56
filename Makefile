# linkpool: build, test, install. `make help` lists the targets. Objects go to build/KIND/, where KIND is
# release (what is installed), debug (the checker runs) or asan (the checker and the sanitizers).
KIND    ?= release
CC      ?= gcc
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
B        = build/$(KIND)

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Werror
FLAGS_release =
FLAGS_debug   = -DLINKPOOL_CHECK
FLAGS_asan    = -DLINKPOOL_CHECK -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OURS     = -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Iinclude -I. -fPIC -fno-semantic-interposition -MMD -MP \
           $(WARNINGS) $(FLAGS_$(KIND))
LIBS     = -lev -lm

CORE     = $(wildcard backoff/*.c link/*.c link/testing/*.c pool/*.c)
UNIT     = $(wildcard tests/unit/*.c)
OBJECTS  = $(CORE:%.c=$(B)/%.o)

all: $(B)/liblinkpool.a

# Criterion's assertions convert bit-fields within their macros: tests alone go without -Wconversion.
$(B)/tests/%.o: WARNINGS += -Wno-conversion -Wno-sign-conversion

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC $@"
	@$(CC) $(CFLAGS) $(OURS) -c $< -o $@

$(B)/liblinkpool.a: $(OBJECTS)
	@echo "  AR $@"
	@$(AR) rcs $@ $^

$(B)/unit: $(UNIT:%.c=$(B)/%.o) $(OBJECTS)
	$(CC) $(CFLAGS) $(FLAGS_$(KIND)) $^ -lcriterion $(LIBS) -o $@

unit:
	$(MAKE) KIND=debug build/debug/unit && build/debug/unit

clean:
	rm -rf build

.PHONY: all unit clean
-include $(shell find build -name '*.d' 2>/dev/null)
