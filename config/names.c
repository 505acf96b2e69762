/* Names that blocks define, and references to them: see parser.h. */
#include "config/parser.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct name {
	uint8_t kind;
	const char *text;
	struct config_pos pos;
	void *object;
};

static const char *const kind_words[] = {
	[NAME_AUTH_GROUP] = "auth-group",
	[NAME_PORTAL_GROUP] = "portal-group",
	[NAME_LUN] = "lun",
	[NAME_TARGET] = "target",
	[NAME_POOL] = "pool",
	[NAME_PATH] = "path",
	[NAME_VOLUME] = "volume",
};

static int name_compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->text, y->text);
}

static const struct name *name_find(struct parser *parser, enum name_kind kind, const char *text)
{
	struct name key = { .kind = (uint8_t)kind, .text = text };
	const struct name *const *found = tfind(&key, &parser->names, name_compare);

	return found ? *found : NULL;
}

bool config_name_add(struct parser *parser, enum name_kind kind, const char *name,
		     struct config_pos pos, void *object)
{
	const struct name *before = name_find(parser, kind, name);
	struct name *added;

	if (before && before->pos.line == 0) {
		config_error(parser->config, pos, "%s %s is predefined: choose another name",
			     kind_words[kind], name);
		return false;
	}
	if (before) {
		config_error(parser->config, pos, "%s %s is already defined at %s",
			     kind_words[kind], name, config_place(parser->config, before->pos));
		return false;
	}
	added = arena_alloc(parser->config->arena, sizeof(*added));
	*added = (struct name){ (uint8_t)kind, name, pos, object };
	if (!tsearch(added, &parser->names, name_compare)) {
		fputs("out of memory: the daemon ends\n", stderr);
		abort();
	}
	return true;
}

void *config_name_find(struct parser *parser, enum name_kind kind, const char *name)
{
	const struct name *found = name_find(parser, kind, name);

	return found ? found->object : NULL;
}

void config_refer(struct parser *parser, enum name_kind kind, const struct config_token *token,
		  void (*found)(void *holder, void *object), void *holder)
{
	struct reference *reference = arena_alloc(parser->config->arena, sizeof(*reference));

	*reference = (struct reference){ (uint8_t)kind, *token, found, holder, NULL };
	*parser->references_end = reference;
	parser->references_end = &reference->next;
}

/* ---- did you mean ---- */

struct names_of_kind {
	uint8_t kind;
	const char *names[256]; /* of more, these will do */
	size_t n;
};

static void collect(const void *node, VISIT visit, void *closure)
{
	const struct name *name = *(const struct name *const *)node;
	struct names_of_kind *all = closure;

	if ((visit == postorder || visit == leaf) && name->kind == all->kind &&
	    all->n < sizeof(all->names) / sizeof(all->names[0]))
		all->names[all->n++] = name->text;
}

static void complain_undefined(struct parser *parser, const struct reference *reference)
{
	struct names_of_kind all = { .kind = reference->kind };
	const char *near;

	twalk_r(parser->names, collect, &all);
	near = option_nearest(reference->token.text, all.names, all.n);
	config_error(parser->config, reference->token.pos, "%s %s is not defined%s%s%s",
		     kind_words[reference->kind], reference->token.text,
		     near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

void config_resolve_references(struct parser *parser)
{
	for (struct reference *r = parser->references; r; r = r->next) {
		void *object = config_name_find(parser, r->kind, r->token.text);

		if (object)
			r->found(r->holder, object);
		else
			complain_undefined(parser, r);
	}
}

static void keep(void *name)
{
	(void)name; /* in the arena */
}

void config_names_release(struct parser *parser)
{
	tdestroy(parser->names, keep);
	parser->names = NULL;
}
