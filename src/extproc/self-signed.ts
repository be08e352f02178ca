import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { TlsOptions } from 'node:tls'

const yearMs = 365 * 86_400_000
const commonName = 'context-cache-gateway'

/** Key and certificate, made now, which no client can verify. They keep readers out, not a forger. */
export const createSelfSigned = (): TlsOptions => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = certificateOf(publicKey.export({ type: 'spki', format: 'der' }), (content) =>
    createSign('sha256').update(content).sign(privateKey),
  )
  return { cert: pemOf(certificate), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`

/** An X.509 certificate (RFC 5280) of version 3, for ten years; Node.js makes none. */
const certificateOf = (publicKey: Buffer, sign: (content: Buffer) => Buffer): Buffer => {
  const name = sequence(der(0x31, sequence(objectId(0x55, 4, 3), der(0x0c, Buffer.from(commonName)))))
  const algorithm = sequence(objectId(0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2))
  const subjectNames = sequence(objectId(0x55, 0x1d, 0x11), der(0x04, sequence(der(0x82, Buffer.from('localhost')))))
  const now = Date.now()
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    name,
    sequence(time(now - 86_400_000), time(now + 10 * yearMs)),
    name,
    publicKey,
    der(0xa3, sequence(subjectNames)),
  )
  return sequence(content, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), sign(content)])))
}

/** Tag, length, value. */
const der = (tag: number, ...values: readonly Buffer[]): Buffer => {
  const value = Buffer.concat(values)
  const { length } = value
  const prefix = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...prefix]), value])
}

const sequence = (...values: readonly Buffer[]): Buffer => der(0x30, ...values)

const objectId = (...bytes: readonly number[]): Buffer => der(0x06, Buffer.from(bytes))

/** UTCTime, `300101000000Z`. */
const time = (ms: number): Buffer => {
  const [, digits = ''] = /^..(.*)\./.exec(new Date(ms).toISOString()) ?? []
  return der(0x17, Buffer.from(`${digits.replaceAll(/\D/g, '')}Z`))
}
