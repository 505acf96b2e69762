/* auth-group blocks, the same words within a target, and secret files: see
 * parser.h. */
#include "config/parser.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "target/iscsi/names.h"

/* The name and the secret of CHAP; one byte counts the response (RFC 1994 4.1). */
#define CHAP_WORD_LEN_MAX 255
/* What Windows takes, and the 96 bits of RFC 7143 9.2.1. */
#define SECRET_LEN_MIN 12
#define SECRET_LEN_MAX 16

static const char *const auth_types[] = { "none", "deny", "chap", "chap-mutual", NULL };

/* ---- groups ---- */

struct config_auth_group *config_auth_group_make(struct parser *parser, const char *name,
						 struct config_pos pos)
{
	struct config_auth_group *group = arena_alloc(parser->config->arena, sizeof(*group));

	group->pos = pos;
	group->name = name;
	return group;
}

void config_auth_group_link(struct parser *parser, struct config_auth_group *group)
{
	struct config_auth_group **last = &parser->config->auth_groups;

	while (*last)
		last = &(*last)->next;
	*last = group;
}

/* The group that a word of this block fills; NULL after an error. */
static struct config_auth_group *group_of(struct parser *parser, const struct statement *s)
{
	struct frame *frame = s->frame;
	const struct given *given;

	if (frame->section != &config_section_target)
		return frame->object;
	given = config_given(frame, "auth-group");
	if (given) {
		config_error(parser->config, s->key.pos,
			     "%s does not go with auth-group (%s): put it into that group",
			     s->key.text, config_place(parser->config, given->pos));
		return NULL;
	}
	if (!frame->own_auth) {
		const struct config_target *target = frame->object;
		struct err name;

		snprintf(name.text, sizeof(name.text), "target %s", target->name);
		frame->own_auth = config_auth_group_make(
			parser, arena_strdup(parser->config->arena, name.text), s->key.pos);
		config_auth_group_link(parser, frame->own_auth);
	}
	return frame->own_auth;
}

void config_auth_type_run(struct parser *parser, const struct statement *s)
{
	struct config_auth_group *group = group_of(parser, s);
	int type = config_choice(parser, "auth-type", &s->args[0], auth_types);

	if (!group || type < 0)
		return;
	group->type = (uint8_t)(CONFIG_AUTH_NONE + type);
	group->type_pos = s->args[0].pos;
}

/* ---- CHAP ---- */

static bool check_user(struct parser *parser, const struct config_token *user)
{
	size_t len = strlen(user->text);

	if (len > 0 && len <= CHAP_WORD_LEN_MAX)
		return true;
	config_error(parser->config, user->pos, "a CHAP user has 1 to %d bytes", CHAP_WORD_LEN_MAX);
	return false;
}

static bool check_secret(struct parser *parser, const struct config_token *secret)
{
	size_t len = strlen(secret->text);

	if (len == 0 || len > CHAP_WORD_LEN_MAX) {
		config_error(parser->config, secret->pos, "a CHAP secret has 1 to %d bytes",
			     CHAP_WORD_LEN_MAX);
		return false;
	}
	if (len < SECRET_LEN_MIN || len > SECRET_LEN_MAX)
		config_warning(parser->config, secret->pos,
			       "a secret of %zu characters: Windows takes only %d to %d%s", len,
			       SECRET_LEN_MIN, SECRET_LEN_MAX,
			       len < SECRET_LEN_MIN ? ", and short ones can be guessed" : "");
	return true;
}

/* What auth-type and the other entries of the group allow. */
static bool check_mix(struct parser *parser, const struct statement *s,
		      const struct config_auth_group *group, bool mutual)
{
	const struct config_chap *first = group->chaps;

	if (first && !first->mutual_user == mutual) {
		config_error(parser->config, s->key.pos,
			     "chap and chap-mutual do not mix in one group: the other is at %s",
			     config_place(parser->config, first->pos));
		return false;
	}
	for (const struct config_chap *chap = first; chap; chap = chap->next) {
		if (strcmp(chap->user, s->args[0].text) == 0) {
			config_error(parser->config, s->args[0].pos,
				     "user %s is already given at %s", chap->user,
				     config_place(parser->config, chap->pos));
			return false;
		}
	}
	return true;
}

static void add_chap(struct parser *parser, const struct statement *s, bool mutual)
{
	struct config_auth_group *group = group_of(parser, s);
	struct config_chap *chap, **last;
	bool good = group && check_user(parser, &s->args[0]);

	good = check_secret(parser, &s->args[1]) && good;
	if (mutual) {
		good = check_user(parser, &s->args[2]) && good;
		good = check_secret(parser, &s->args[3]) && good;
	}
	if (!good || !check_mix(parser, s, group, mutual))
		return;
	if (mutual && strcmp(s->args[1].text, s->args[3].text) == 0)
		config_warning(parser->config, s->args[3].pos,
			       "both directions have the same secret (RFC 7143 9.2.1 forbids it): "
			       "an initiator that logs in elsewhere gives ours away");
	chap = arena_alloc(parser->config->arena, sizeof(*chap));
	*chap = (struct config_chap){
		.pos = s->key.pos,
		.user = s->args[0].text,
		.secret = s->args[1].text,
		.mutual_user = mutual ? s->args[2].text : NULL,
		.mutual_secret = mutual ? s->args[3].text : NULL,
	};
	last = &group->chaps;
	while (*last)
		last = &(*last)->next;
	*last = chap;
}

void config_chap_run(struct parser *parser, const struct statement *s)
{
	add_chap(parser, s, false);
}

void config_chap_mutual_run(struct parser *parser, const struct statement *s)
{
	add_chap(parser, s, true);
}

/* ---- names and addresses of initiators ---- */

static void add_word(struct parser *parser, struct config_word **last, struct config_pos pos,
		     const char *text)
{
	struct config_word *word = arena_alloc(parser->config->arena, sizeof(*word));

	*word = (struct config_word){ .pos = pos, .text = text };
	while (*last)
		last = &(*last)->next;
	*last = word;
}

static char *lower_case(struct parser *parser, const char *text)
{
	char *copy = arena_strdup(parser->config->arena, text);

	for (char *c = copy; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

void config_initiator_name_run(struct parser *parser, const struct statement *s)
{
	struct config_auth_group *group = group_of(parser, s);
	const struct config_token *name = &s->args[0];
	char normal[ISCSI_NAME_LEN_MAX + 1];
	struct err err;

	if (!group)
		return;
	/* ctl.conf(5) lets any text stand here, so it is no error. */
	if (!strpbrk(name->text, "*?") &&
	    iscsi_name_normalize(name->text, normal, sizeof(normal), &err) != 0)
		config_warning(parser->config, name->pos, "no initiator can have this name: %s",
			       err.text);
	add_word(parser, &group->initiator_names, name->pos, lower_case(parser, name->text));
}

/* "ADDR[/LEN]" with or without [] around ADDR; 0 or -EINVAL with what is wrong. */
static int range_check(const char *text, struct err *err)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned char bytes[16];
	char address[64];
	uint64_t bits = 0, bits_max;

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(address))
		len = 0;
	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	if (inet_pton(AF_INET, address, bytes) == 1)
		bits_max = 32;
	else if (inet_pton(AF_INET6, address, bytes) == 1)
		bits_max = 128;
	else
		return err_set(err, EINVAL, "not an IPv4 or IPv6 address, such as 192.0.2.0/24");
	if (slash && (size_parse(slash + 1, &bits) != 0 || bits > bits_max))
		return err_set(err, EINVAL, "%s is not a prefix length of 0..%u", slash + 1,
			       (unsigned int)bits_max);
	return 0;
}

void config_initiator_portal_run(struct parser *parser, const struct statement *s)
{
	struct config_auth_group *group = group_of(parser, s);
	const struct config_token *range = &s->args[0];
	struct err err;

	if (range_check(range->text, &err) != 0)
		config_error(parser->config, range->pos, "initiator-portal: %s: %s", range->text,
			     err.text);
	else if (group)
		add_word(parser, &group->initiator_portals, range->pos, range->text);
}

static void secret_file_run(struct parser *parser, const struct statement *s)
{
	config_read_secret_file(parser, &s->args[0], s->frame->object);
}

/* ---- sections ---- */

void config_auth_group_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct config_auth_group *group = config_auth_group_make(parser, name->text, name->pos);
	struct frame frame = {
		.section = &config_section_auth_group,
		.pos = s->key.pos,
		.object = group,
	};

	if (config_name_add(parser, NAME_AUTH_GROUP, name->text, name->pos, group))
		config_auth_group_link(parser, group);
	config_parse_block(parser, s, &frame);
}

static const struct section_word auth_group_words[] = {
	{ "auth-type", 1, 1, WORD_ONCE, "none|deny|chap|chap-mutual", config_auth_type_run },
	{ "chap", 2, 2, 0, "USER SECRET", config_chap_run },
	{ "chap-mutual", 4, 4, 0, "USER SECRET MUTUAL-USER MUTUAL-SECRET", config_chap_mutual_run },
	{ "initiator-name", 1, 1, 0, "NAME", config_initiator_name_run },
	{ "initiator-portal", 1, 1, 0, "ADDRESS[/LENGTH]", config_initiator_portal_run },
	{ "secret-file", 1, 1, 0, "PATH", secret_file_run },
	{ "host-address", 1, 1, WORD_NO_EFFECT, "ADDRESS[/LENGTH]", config_run_no_effect },
	{ "host-nqn", 1, 1, WORD_NO_EFFECT, "NAME", config_run_no_effect },
	{ .name = NULL },
};

const struct section config_section_auth_group = {
	.name = "an auth-group",
	.words = auth_group_words,
};

static const struct section_word secret_file_words[] = {
	{ "chap", 2, 2, 0, "USER SECRET", config_chap_run },
	{ "chap-mutual", 4, 4, 0, "USER SECRET MUTUAL-USER MUTUAL-SECRET", config_chap_mutual_run },
	{ .name = NULL },
};

const struct section config_section_secret_file = {
	.name = "a secret-file",
	.words = secret_file_words,
};
