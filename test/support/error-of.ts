import { GatewayError } from '../../src/openai/gateway-error.ts'

/** The GatewayError that `call` throws; throws itself when there is none. */
export const errorOf = (call: () => unknown): GatewayError => {
  try {
    call()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
