// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Converts the number of a reason to its name, sentence and remedy; the list is in reason.h. */
#include "portable.h"
#include "reason.h"

/**
 * afr_reason_name() - get the name of a reason
 * @reason: a number, possibly from the peer
 *
 * Context: any.
 * Return: the name in AFR_REASONS, "UNKNOWN" if the number is not in the list; never NULL.
 */
const char *afr_reason_name(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence, remedy) case number: return #name;
	AFR_REASONS
#undef AFR_REASON
	}
	return "UNKNOWN";
}

/**
 * afr_reason_text() - get the sentence that explains a reason to an administrator
 * @reason: a number, possibly from the peer
 *
 * Context: any.
 * Return: the sentence in AFR_REASONS, "unknown reason: ..." if the number is not in the list;
 * never NULL.
 */
const char *afr_reason_text(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence, remedy) case number: return sentence;
	AFR_REASONS
#undef AFR_REASON
	}
	return "unknown reason: the peer runs a newer version, or sent nonsense";
}

/**
 * afr_reason_remedy() - get what an administrator can do about a reason
 * @reason: a number, possibly from the peer
 *
 * Context: any.
 * Return: the remedy in AFR_REASONS, which is empty if there is nothing to do; "update ..." if the
 * number is not in the list; never NULL.
 */
const char *afr_reason_remedy(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence, remedy) case number: return remedy;
	AFR_REASONS
#undef AFR_REASON
	}
	return "update the module at this end to the version of the peer";
}
