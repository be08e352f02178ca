import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Issues tokens (JWT, ES256), and serves the key by which others check them. */
export interface TokenIssuer {
  readonly port: number
  /** A token with these claims, valid for an hour unless they say otherwise. */
  token(claims: Readonly<Record<string, unknown>>): string
  stop(): void
}

/** The issuer and audience of the examples in deploy. */
const defaults = { iss: 'https://issuer.example.com', aud: 'context-cache' }

export const startTokenIssuer = async (host = '127.0.0.1'): Promise<TokenIssuer> => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }]
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys })))
  server.listen(0, host)
  await once(server, 'listening')
  const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  return {
    port: (server.address() as AddressInfo).port,
    token: (claims) => {
      const body = { ...defaults, exp: Math.floor(Date.now() / 1000) + 3600, ...claims }
      const signed = `${encoded({ alg: 'ES256', kid: 'one' })}.${encoded(body)}`
      const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${signed}.${signature.toString('base64url')}`
    },
    stop: () => server.close(),
  }
}
