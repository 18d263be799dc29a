// SPDX-License-Identifier: GPL-2.0
/* Names and sentences of the reasons; the list is in reason.h. */
#include "pure.h"
#include "reason.h"

/**
 * afr_reason_name() - short name of a reason
 * @reason: a number, perhaps from the wire
 *
 * Returns: the name in AFR_REASONS, "UNKNOWN" for a number not in it.
 */
const char *afr_reason_name(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence) case number: return #name;
	AFR_REASONS
#undef AFR_REASON
	}
	return "UNKNOWN";
}

/**
 * afr_reason_text() - what a reason tells an administrator
 * @reason: a number, perhaps from the wire
 *
 * Returns: the sentence in AFR_REASONS, or one that says there is none.
 */
const char *afr_reason_text(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence) case number: return sentence;
	AFR_REASONS
#undef AFR_REASON
	}
	return "unknown reason: the peer runs a newer version, or sent nonsense";
}
