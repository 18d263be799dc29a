// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Prints the fields of objects as text or JSON, and applies the filters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "print.h"

struct filter {
	const char	*key;
	const char	*value;
	bool		known;		/* at least one object has this key */
	bool		matched;	/* the current object has this value */
};

struct print {
	FILE			*out;
	enum print_format	format;
	struct json_object	*array;		/* JSON only: objects that passed the filters */
	struct json_object	*object;	/* the current object, built in every format */
	struct json_object	*nest;		/* fields go here: @object, or an object in it */
	FILE			*text;		/* @object as text, written to text_buf */
	char			*text_buf;	/* with PRINT_TEXT, printed if @object passes */
	size_t			text_len;
	unsigned int		objects, passed;
	int			n_filters;
	struct filter		filters[];
};

/*
 * Starts output to @out. @filters are @n strings, KEY VALUE KEY VALUE ..., which must remain valid
 * until print_close() or print_drop(). Returns NULL if there is no memory.
 */
struct print *print_open(FILE *out, enum print_format format, char *const *filters, int n)
{
	struct print *p;
	int i;

	p = calloc(1, sizeof(*p) + n / 2 * sizeof(p->filters[0]));
	if (!p)
		return NULL;
	p->out = out;
	p->format = format;
	p->array = json_object_new_array();
	p->n_filters = n / 2;
	for (i = 0; i < p->n_filters; i++) {
		p->filters[i].key = filters[2 * i];
		p->filters[i].value = filters[2 * i + 1];
	}
	return p;
}

/* Begins an object; print_end() ends it. Fields are printed in between. */
void print_begin(struct print *p)
{
	int i;

	p->object = json_object_new_object();
	p->nest = p->object;
	p->text = open_memstream(&p->text_buf, &p->text_len);
	if (!p->object || !p->text) {
		fputs("smctl: out of memory\n", stderr);
		exit(2);
	}
	p->objects++;
	for (i = 0; i < p->n_filters; i++)
		p->filters[i].matched = false;
}

/* Does the current object match all filters? */
static bool passes(const struct print *p)
{
	int i;

	for (i = 0; i < p->n_filters; i++)
		if (!p->filters[i].matched)
			return false;
	return true;
}

void print_end(struct print *p)
{
	bool pass = passes(p);

	p->passed += pass;
	fclose(p->text);
	if (pass && p->format == PRINT_TEXT)
		fwrite(p->text_buf, 1, p->text_len, p->out);
	free(p->text_buf);
	if (pass && p->format != PRINT_TEXT)
		json_object_array_add(p->array, p->object);
	else
		json_object_put(p->object);
	p->object = NULL;
}

/* Begins an object within the current one. */
void print_nest_begin(struct print *p, const char *key)
{
	struct json_object *nest = json_object_new_object();

	json_object_object_add(p->object, key, nest);
	p->nest = nest;
}

void print_nest_end(struct print *p)
{
	p->nest = p->object;
}

/*
 * Does the key @filter mean @key? "path" means tx_path and rx_path, and so on for other keys with
 * these prefixes; "sport" and "dport" are the names that ss(8) has for the ports.
 */
static bool key_matches(const char *filter, const char *key)
{
	if (!strcmp(filter, key))
		return true;
	if (!strncmp(key, "tx_", 3) || !strncmp(key, "rx_", 3))
		return !strcmp(filter, key + 3);
	if (!strcmp(filter, "sport"))
		return !strcmp(key, "local_port");
	return !strcmp(filter, "dport") && !strcmp(key, "peer_port");
}

/* Compares a field of the current object with the filters. */
static void match(struct print *p, const char *key, const char *value)
{
	struct filter *filter;

	for (filter = p->filters; filter < p->filters + p->n_filters; filter++) {
		if (!key_matches(filter->key, key))
			continue;
		filter->known = true;
		if (!strcmp(filter->value, value))
			filter->matched = true;
	}
}

/*
 * Prints a field. In text output it has the printf() format @format, or is omitted if @format is
 * NULL.
 */
void print_string(struct print *p, const char *key, const char *format, const char *value)
{
	match(p, key, value);
	json_object_object_add(p->nest, key, json_object_new_string(value));
	if (format)
		fprintf(p->text, format, value);
}

void print_u64(struct print *p, const char *key, const char *format, uint64_t value)
{
	char decimal[21];

	snprintf(decimal, sizeof(decimal), "%" PRIu64, value);
	match(p, key, decimal);
	json_object_object_add(p->nest, key, json_object_new_uint64(value));
	if (format)
		fprintf(p->text, format, value);
}

/* Prints a boolean field; in text, @text appears if @value is true. */
void print_flag(struct print *p, const char *key, const char *text, bool value)
{
	match(p, key, value ? "true" : "false");
	json_object_object_add(p->nest, key, json_object_new_boolean(value));
	if (value && text)
		fputs(text, p->text);
}

/* Prints text between fields; JSON output omits it. */
void print_text(struct print *p, const char *text)
{
	fputs(text, p->text);
}

static void write_json(struct print *p)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	if (p->format == PRINT_PRETTY)
		flags |= JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	fprintf(p->out, "%s\n", json_object_to_json_string_ext(p->array, flags));
}

/* Returns a message about why no object has passed the filters. */
static const char *why_nothing(const struct print *p)
{
	int i;

	for (i = 0; i < p->n_filters; i++)
		if (p->objects && !p->filters[i].known)
			return "nothing matches: there is no such field (smctl -p shows all)";
	return "nothing matches";
}

/* Frees @p without output. */
void print_drop(struct print *p)
{
	json_object_put(p->array);
	free(p);
}

/*
 * Completes the output and frees @p. Returns 0; 1 if there are filters and no object has passed
 * them; or 2 if the output could not be written. If the result is not 0, *@error is a message.
 */
int print_close(struct print *p, const char **error)
{
	int ret = 0;

	if (p->format != PRINT_TEXT)
		write_json(p);
	if (p->n_filters && !p->passed) {
		*error = why_nothing(p);
		ret = 1;
	}
	if (fflush(p->out) || ferror(p->out)) {
		*error = "cannot write the output";
		ret = 2;
	}
	print_drop(p);
	return ret;
}
