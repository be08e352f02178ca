import { z } from 'zod'
import {
  isResourceName,
  parsePriority,
  parseRequirement,
  parseResourceCount,
} from '../admission/plan/admission-notation.ts'

/** TCP port; 0 takes any free one. */
export const listenPort = z.int().min(0).max(65_535)

/** TCP port of somebody else. */
export const remotePort = z.int().min(1).max(65_535)

export const host = z.string().min(1).max(255)

/** `host:port`, or `[ipv6]:port`. */
export const hostPort = z
  .string()
  .regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$/, 'must be host:port')
  .refine((value) => Number(value.slice(value.lastIndexOf(':') + 1)) <= 65_535, 'the port must be at most 65535')

/** `http://host:port` of a server without a path. */
export const serverUrl = z
  .string()
  .regex(
    /^http:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$/,
    'must be http://host:port',
  )

/** `host:port=name`: what a pod is called elsewhere. */
export const podAlias = z.string().regex(/^[^=\s]+:[1-9][0-9]{0,4}=[^=\s]{1,256}$/, 'must be host:port=instance')

/** HTTP header name as Envoy hands it over. */
export const headerName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'must be a header name in lower case')

export const redisUrl = z
  .string()
  .regex(/^rediss?:\/\/[^\s/]/, 'must start with redis:// or rediss://, and name a host')

export const filePath = z.string().min(1)

/** Time spans that make sense for one call or one interval: from a few milliseconds to a day. */
export const milliseconds = z.int().min(1).max(86_400_000)

/** What a piece of work requires: `prefill=R1:4 R2:1`, `load/model=R3:1`. */
export const requirement = z
  .string()
  .refine((text) => parseRequirement(text) !== undefined, 'must be like prefill=R1:4 R2:1 or prefill/my-model=R1:4')

/** How much there is of a resource: `R1:10`, `R2:5:0`, `R2:5:10.0.0.1:8000`. */
export const resourceCount = z
  .string()
  .refine((text) => parseResourceCount(text) !== undefined, 'must be like R1:10, R2:5:0 or R2:5:10.0.0.1:8000')

export const resourceName = z.string().refine(isResourceName, 'must begin with a letter, of letters, digits, _ and -')

/** `my-model=2` */
export const modelPriority = z
  .string()
  .refine((text) => parsePriority(text) !== undefined, 'must be like my-model=2, where 1 is the highest')

/** Up to nine digits, as the `x-session-ttl` header has them. */
export const seconds = z.int().min(1).max(999_999_999)

export const count = z.int().min(1).max(1_000_000_000)
