import { isIP, isIPv6, SocketAddress } from 'node:net'
import { z } from 'zod'
import { urlsOfHosts } from './redis-url.ts'

export const integer = (min: number, max: number) => z.int().min(min).max(max)

export const decimal = (min: number, max: number) => z.number().min(min).max(max)

/** TCP port to listen on; 0: any free one. */
export const listenPort = integer(0, 65_535)

/** Duration of one call or one interval, at most a day. */
export const milliseconds = integer(1, 86_400_000).meta({ unit: 'ms' })

/** At most nine digits, as in the header `x-session-ttl`. */
export const seconds = integer(1, 999_999_999).meta({ unit: 's' })

/** Size in bytes. */
export const bytes = (min: number, max: number) => integer(min, max).meta({ unit: 'bytes' })

/** A switch, off by default. */
export const flag = (description: string) => z.boolean().default(false).describe(description)

export const share = decimal(0.1, 1)

export const host = z.string().min(1).max(255)

export const filePath = z.string().min(1)

/** With each `[ipv6]` in its shortest form, in which Envoy and the gateway know pods. */
export const withShortIpv6 = (text: string): string =>
  text.replace(/\[([\da-f:.]+)\]/gi, (written, address: string) =>
    isIPv6(address) ? `[${new SocketAddress({ address, family: 'ipv6' }).address}]` : written,
  )

/** `host:port`, or `[ipv6]:port`. */
export const hostPort = z
  .string()
  .regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$/, {
    message: 'must be host:port',
    abort: true,
  })
  .refine((value) => Number(value.slice(value.lastIndexOf(':') + 1)) <= 65_535, 'the port must be at most 65535')
  .overwrite(withShortIpv6)

/** `http://host:port`, without a path. */
export const serverUrl = z
  .string()
  .refine((text) => text.startsWith('http://') && hostPort.safeParse(text.slice(7)).success, 'must be http://host:port')

/** Whether a pod, `host:port`, is given by IP address. The gateway knows those by host name as what they resolve to. */
export const isByIp = (pod: string): boolean => isIP(pod.slice(0, pod.lastIndexOf(':')).replace(/^\[|\]$/g, '')) !== 0

/** `ip:port=name` */
export const podAlias = z
  .string()
  .refine(
    (text) => /^[^=\s]+:[1-9][0-9]{0,4}=[^=\s]{1,256}$/.test(text) && isByIp(text.slice(0, text.indexOf('='))),
    'must be ip:port=instance',
  )
  .overwrite(withShortIpv6)

/** HTTP header name, as Envoy sends it. */
export const headerName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'must be a header name in lower case')

const canDecode = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** A URL as the Redis client reads it: a `#`, `/` or `?` in a password would end the host, or lead to another one. */
const isRedisUrl = (text: string): boolean => {
  if (!/^rediss?:\/\/[^\s/]/.test(text) || !URL.canParse(text)) return false
  const { hostname, hash, username, password } = new URL(text)
  return hostname !== '' && hash === '' && canDecode(username) && canDecode(password)
}

export const redisUrl = z
  .string()
  .refine(
    isRedisUrl,
    'must be redis:// or rediss://user:password@host:port/database, with special characters of the password percent-encoded',
  )
  .meta({ secret: 'credentials' })

const ofHosts = (isUrl: (text: string) => boolean, message: string) =>
  z
    .string()
    .refine((text) => !text.includes('?') && urlsOfHosts(text).every((url) => isRedisUrl(url) && isUrl(url)), message)
    .meta({ secret: 'credentials' })

/** Nodes of a Redis Cluster, which has no databases. */
export const redisCluster = ofHosts(
  (url) => /^\/?0?$/.test(new URL(url).pathname),
  'must be redis:// or rediss://user:password@host:port,host:port without a database, with special characters of the password percent-encoded',
)

/** Sentinels, with what the Redis servers that they name ask for. */
export const redisSentinels = ofHosts(
  () => true,
  'must be redis:// or rediss://user:password@host:port,host:port/database: the sentinels, with user and password of the Redis servers, and special characters of the password percent-encoded',
)

/** A password, as it is. */
export const password = z.string().min(1).max(1024).meta({ secret: 'whole' })

/** White space around a secret, or instead of one, does not make it longer. */
export const tenantSecret = z
  .string()
  .min(32)
  .max(1024)
  .refine(
    (text) => text.length < 32 || text.trim().length >= 32,
    'must have 32 characters without surrounding white space',
  )
  .meta({ secret: 'whole' })

/** A credential as it is sent in a header: no white space. */
export const apiKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable ASCII characters without spaces')
  .meta({ secret: 'whole' })

/** A credential that operators present. */
export const adminToken = z
  .string()
  .regex(/^[\x21-\x7e]{16,1024}$/, 'must be 16 or more printable ASCII characters without spaces')
  .meta({ secret: 'whole' })

const isHttpUrl = (text: string): boolean => /^https?:\/\/[^\s/]/.test(text) && URL.canParse(text)

/** `http://` or `https://`, with a path if need be. */
export const httpUrl = z
  .string()
  .refine(isHttpUrl, 'must be http://host:port or https://host:port, with a path if need be')
  .meta({ secret: 'credentials' })

/** `name=value`, with commas between them, as OpenTelemetry has them. */
export const otlpHeaders = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]+=[\x21-\x2b\x2d-\x7e]*(?:,[!#$%&'*+.^_`|~\w-]+=[\x21-\x2b\x2d-\x7e]*)*$/, {
    message: 'must be name=value,name=value, with values percent-encoded',
  })
  .meta({ secret: 'whole' })

/** A group of options, each with its default. */
export const group = <Shape extends z.core.$ZodLooseShape>(shape: Shape) => {
  const options = z.strictObject(shape)
  return options.prefault({} as z.input<typeof options>)
}
