# Builds programs with one MPI compiler and links them with the harness. Works with the mpicc of MPICH and of Open MPI and
# with SimGrid's smpicc. The makefile that includes this sets
#
#   HARNESS      the folder of the harness
#   FOLDERS      folders of programs: each .c file there that holds a main() becomes a program of its name; the objects
#                of all extensions lie in one folder, in folders of these names
#   EXTRA_FLAGS  further flags to compile their files
#   LIBRARIES    further flags to link them

MPICC  ?= mpicc
BUILD  ?= build/mpi
CFLAGS ?= -O2
FLAGS  := -std=c11 -D_POSIX_C_SOURCE=200809L $(CFLAGS) -Wall -Wextra -Werror

OBJ      := $(BUILD)/obj
PROGRAMS := $(shell grep -l '^int main' $(wildcard $(addsuffix /*.c,$(FOLDERS))))
PARTS    := $(filter-out $(PROGRAMS),$(wildcard $(addsuffix /*.c,$(FOLDERS))))
OBJECTS  := $(patsubst %.c,$(OBJ)/%.o,$(PROGRAMS) $(PARTS))
BINARIES := $(addprefix $(BUILD)/,$(notdir $(basename $(PROGRAMS))))

HARNESS_OBJECTS := $(patsubst $(HARNESS)/%.c,$(OBJ)/harness/%.o,$(wildcard $(HARNESS)/*.c))
parts_of         = $(HARNESS_OBJECTS) $(patsubst %.c,$(OBJ)/%.o,$(filter $(dir $(1))%,$(PARTS)))

# Of programs that were here once, nobody is to find what an older build left.
GONE := $(filter-out $(OBJECTS),$(foreach folder,$(FOLDERS),$(wildcard $(OBJ)/$(folder)/*.o)))
LEFT := $(GONE) $(GONE:.o=.d) $(filter-out $(BINARIES),$(addprefix $(BUILD)/,$(notdir $(basename $(GONE)))))

all: $(BINARIES)
	@rm -f $(LEFT)

# The command is part of what --describe tells, so another compiler or other flags in the same BUILD rebuild all; so does
# another compiler under the same path, whose IDENTITY the caller gives.
COMMAND := $(MPICC) $(FLAGS)
$(OBJ)/command: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(COMMAND)' '$(IDENTITY)' | cmp -s - $@ || printf '%s\n' '$(COMMAND)' '$(IDENTITY)' > $@

define compile
@mkdir -p $(@D)
$(COMMAND) $(EXTRA_FLAGS) -I$(HARNESS) -DCOMMODEL_MPICC='"$(MPICC)"' -DCOMMODEL_FLAGS='"$(FLAGS)"' -MMD -MP -c $< -o $@
endef

$(OBJECTS): $(OBJ)/%.o: %.c $(OBJ)/command
	$(compile)

define link
$(BUILD)/$(notdir $(basename $(1))): $(OBJ)/$(basename $(1)).o $(call parts_of,$(1))
	$(MPICC) $(CFLAGS) -o $$@ $$^ $(LIBRARIES)
endef
$(foreach program,$(PROGRAMS),$(eval $(call link,$(program))))

clean:
	rm -rf $(OBJ) $(BINARIES)

FORCE:
.PHONY: all clean FORCE

-include $(OBJECTS:.o=.d)
