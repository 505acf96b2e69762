/*
 * Intrusive doubly linked circular list.
 *
 * The head and every link are a struct list; a link that is on no list points
 * to itself, so list_del() may be called on it again.  The container is found
 * by container_of().  Nothing here allocates or locks: the list belongs to
 * whoever owns the head.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void list_add_head(struct list *head, struct list *link)
{
	link->next = head->next;
	link->prev = head;
	head->next->prev = link;
	head->next = link;
}

static inline void list_del(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* Takes the first link off the list; NULL when the list is empty. */
static inline struct list *list_pop(struct list *head)
{
	struct list *link = head->next;

	if (link == head)
		return NULL;
	list_del(link);
	return link;
}

/* Moves everything on from to the end of to. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_for_each(pos, head) \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may take pos off the list, but no other link. */
#define list_for_each_safe(pos, head)                                                 \
	for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head); \
	     pos = pos##_next, pos##_next = pos->next)

#endif
