import { types } from 'node:util'

/** What an error says of itself. */
export const errorText = (error: unknown): string => (types.isNativeError(error) ? error.message : String(error))
