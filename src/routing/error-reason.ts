import { types } from 'node:util'

/** Why a call failed, in a few words. A system error's code (`ECONNREFUSED`) says all there is to say. */
export const errorReason = (error: unknown): string => {
  if (!types.isNativeError(error)) return 'failed'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
