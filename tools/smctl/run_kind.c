// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Finds out what kind of program a file is: does it create sockets through the C library? */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "smctl.h"

enum { SCRIPTS_MAX = 5 };	/* nested scripts: the limit of the kernel */

struct elf {
	ElfW(Ehdr)	head;
	int		fd;
};

static bool read_at(int fd, uint64_t at, void *to, size_t size)
{
	return pread(fd, to, size, at) == (ssize_t)size;
}

/*
 * Finds the file that execvp() would start: @name itself if it contains a slash, else the first
 * executable file of that name in PATH.
 */
static bool find_program(const char *name, char path[static PATH_MAX])
{
	const char *folder = getenv("PATH");
	struct stat file;
	size_t len;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (folder = folder ? folder : "/bin:/usr/bin"; ; folder += len + 1) {
		len = strcspn(folder, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, folder, len ? "/" : "",
			     name) < PATH_MAX && !access(path, X_OK) &&
		    !stat(path, &file) && S_ISREG(file.st_mode))
			return true;
		if (!folder[len])
			return false;
	}
}

/* Is the program linked dynamically, that is, does it need the dynamic loader? */
static bool has_interpreter(const struct elf *elf)
{
	ElfW(Phdr) segment;
	unsigned int i;

	for (i = 0; i < elf->head.e_phnum; i++)
		if (read_at(elf->fd, elf->head.e_phoff + (uint64_t)i * elf->head.e_phentsize,
			    &segment, sizeof(segment)) && segment.p_type == PT_INTERP)
			return true;
	return false;
}

static bool read_section(const struct elf *elf, unsigned int i, ElfW(Shdr) *section)
{
	return read_at(elf->fd, elf->head.e_shoff + (uint64_t)i * elf->head.e_shentsize,
		       section, sizeof(*section));
}

/* Even a stripped Go program has one of these sections. */
static bool is_go_name(const char *name)
{
	return !strcmp(name, ".go.buildinfo") || !strcmp(name, ".note.go.buildid");
}

static bool has_go_section(const struct elf *elf)
{
	ElfW(Shdr) names, section;
	char name[32] = "";
	unsigned int i;

	if (!elf->head.e_shoff || !read_section(elf, elf->head.e_shstrndx, &names))
		return false;
	for (i = 0; i < elf->head.e_shnum; i++)
		if (read_section(elf, i, &section) &&
		    pread(elf->fd, name, sizeof(name) - 1, names.sh_offset + section.sh_name) > 0 &&
		    is_go_name(name))
			return true;
	return false;
}

/* Is @elf for the same machine as smctl? */
static bool is_native(const struct elf *elf)
{
	struct elf own = { .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	bool same;

	if (own.fd < 0)
		return true;
	same = read_at(own.fd, 0, &own.head, sizeof(own.head)) &&
	       !memcmp(own.head.e_ident, elf->head.e_ident, EI_VERSION) &&
	       own.head.e_machine == elf->head.e_machine;
	close(own.fd);
	return same;
}

static enum program_kind elf_kind(const struct elf *elf)
{
	if (!is_native(elf))
		return PROGRAM_FOREIGN;
	if (has_go_section(elf))
		return PROGRAM_GO;
	return has_interpreter(elf) ? PROGRAM_DYNAMIC : PROGRAM_STATIC;
}

/* If the file begins with "#!INTERPRETER", copies INTERPRETER to @path; else returns false. */
static bool read_interpreter(int fd, char path[static PATH_MAX])
{
	char line[256] = "";
	char *word = line + 2;

	if (pread(fd, line, sizeof(line) - 1, 0) < 3 || memcmp(line, "#!", 2))
		return false;
	word += strspn(word, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	strcpy(path, word);
	return *word;
}

/*
 * Returns the kind of the file @path. For a script, sets *@script, replaces @path by the path of
 * its interpreter, and returns PROGRAM_UNKNOWN; the caller must then call again with that path.
 */
static enum program_kind file_kind(char path[static PATH_MAX], bool *script)
{
	enum program_kind kind = PROGRAM_UNKNOWN;
	struct elf elf = { .fd = open(path, O_RDONLY | O_CLOEXEC) };

	*script = false;
	if (elf.fd < 0)
		return PROGRAM_MISSING;
	if (read_at(elf.fd, 0, &elf.head, sizeof(elf.head)) &&
	    !memcmp(elf.head.e_ident, ELFMAG, SELFMAG))
		kind = elf_kind(&elf);
	else
		*script = read_interpreter(elf.fd, path);
	close(elf.fd);
	return kind;
}

/*
 * Returns the kind of the program that execvp() would start for @name; for a script, the kind of
 * its interpreter.
 */
enum program_kind program_kind(const char *name)
{
	enum program_kind kind = PROGRAM_MISSING;
	char path[PATH_MAX];
	bool script = true;
	int i;

	if (!find_program(name, path))
		return PROGRAM_MISSING;
	for (i = 0; script && i <= SCRIPTS_MAX; i++)
		kind = file_kind(path, &script);
	return kind;
}
