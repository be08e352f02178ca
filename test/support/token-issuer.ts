import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { listenLocally } from './local-server.ts'

/** Issues tokens (JWT, ES256), and serves the key by which others check them. */
export interface TokenIssuer {
  readonly port: number
  /** A token with these claims, valid for an hour unless they say otherwise. */
  token(claims: Readonly<Record<string, unknown>>): string
  stop(): void
}

/** The issuer and audience of the examples in deploy. */
const defaults = { iss: 'https://issuer.example.com', aud: 'context-cache' }

export const startTokenIssuer = async (): Promise<TokenIssuer> => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }]
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys })))
  const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  return {
    port: await listenLocally(server),
    token: (claims) => {
      const body = { ...defaults, exp: Math.floor(Date.now() / 1000) + 3600, ...claims }
      const signed = `${encoded({ alg: 'ES256', kid: 'one' })}.${encoded(body)}`
      const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${signed}.${signature.toString('base64url')}`
    },
    stop: () => server.close(),
  }
}
