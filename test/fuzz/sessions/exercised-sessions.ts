import { sessionKey, tenantKey } from '../../contract/sessions/store-under-test.ts'

export const tenants = [tenantKey('alice'), tenantKey('mallory')] as const
/** The session that a name chooses. */
export const named = sessionKey('named')
/** That of the same name, by another secret. */
export const otherNamed = sessionKey('other-named')
