/*
 * What the files of the login share: login.c (requests, stages, who may come
 * in) and login_security.c (AuthMethod and CHAP).  For them only.
 */
#ifndef ISCSI_LOGIN_INTERNAL_H
#define ISCSI_LOGIN_INTERNAL_H

#include "target/iscsi/chap.h"
#include "target/iscsi/keys.h"
#include "target/iscsi/login.h"

/* One answer goes in one PDU; ours are a few hundred bytes. */
#define LOGIN_ANSWER_MAX 3072
/* Keys in one request; initiators send about twenty. */
#define LOGIN_PAIRS_MAX 128
#define LOGIN_USER_MAX	255

enum login_auth_step {
	LOGIN_AUTH_METHOD,    /* AuthMethod comes next */
	LOGIN_AUTH_ALGORITHM, /* CHAP_A */
	LOGIN_AUTH_RESPONSE,  /* CHAP_N and CHAP_R */
	LOGIN_AUTH_DONE,      /* nothing more; see authenticated */
};

struct iscsi_login {
	struct iscsi_login_peer peer;
	struct iscsi_negotiation negotiation;
	uint8_t isid[6];
	uint16_t tsih, cid;
	uint32_t cmd_sn;
	uint32_t nrequests;
	uint8_t stage;	    /* enum iscsi_stage */
	bool greeted;	    /* our declarations of the first response are out */
	bool declared;	    /* MaxRecvDataSegmentLength is out */
	bool ended;	    /* DONE or FAILED */
	bool authenticated; /* by CHAP */
	uint8_t step;	    /* enum login_auth_step */
	uint8_t chap_id;
	unsigned int chap_algorithm;
	uint8_t challenge[CHAP_CHALLENGE_LEN];
	char chap_user[LOGIN_USER_MAX + 1];
	char *text; /* of requests with the C bit; NULL when there is none */
	uint32_t text_len;
	struct iscsi_key_failure failure;
	struct iscsi_text_out out;
	char answer[LOGIN_ANSWER_MAX];
};

/* What the view says about this login, for the time of one request. */
struct login_admission {
	const struct iscsi_portal_group *group;
	const struct iscsi_target_view *target; /* NULL in discovery */
	const struct iscsi_auth_group *auth;
	const struct iscsi_limits *limits;
};

/* The keys of authentication in one request; NULL: not there. */
struct login_credentials {
	const char *auth_method, *chap_a, *chap_i, *chap_c, *chap_n, *chap_r;
};

/* Sets failure; returns -EPROTO. */
int login_fail(struct iscsi_login *login, enum iscsi_login_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The member for a key of authentication, or NULL for another key. */
const char **login_credential(struct login_credentials *credentials, const char *key);

bool login_wants_chap(const struct iscsi_auth_group *auth);

/*
 * One request in the security stage: takes the step that its keys are, answers
 * into login->out.  0 or -EPROTO.  step is LOGIN_AUTH_DONE when the peer may go
 * on to another stage.
 */
int login_security(struct iscsi_login *login, const struct iscsi_auth_group *auth,
		   const struct login_credentials *credentials);

#endif
