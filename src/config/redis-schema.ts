import { z } from 'zod'
import { filePath, password, redisCluster, redisSentinels, redisUrl } from '../options/values.ts'

const redisTls = z
  .strictObject({
    ca: filePath
      .optional()
      .describe(
        'PEM file with the authorities that sign the certificates of Redis. Default: those that Node.js knows.',
      ),
    certificate: filePath
      .optional()
      .describe('PEM file with the certificate that the gateway shows (mTLS). Read again for every new connection.'),
    key: filePath.optional().describe('PEM file with the private key of the certificate.'),
  })
  .refine(({ certificate, key }) => (certificate === undefined) === (key === undefined), {
    message: 'give both certificate and key, or neither',
  })

/** Options of the sessions that say where Redis is. */
export const redisShape = {
  redisUrl: redisUrl.optional().meta({
    description: 'One Redis: `redis://user:password@host:port/database`, or `rediss://` for TLS.',
    plainEnv: 'REDIS_URL',
  }),
  redisUrlFile: filePath.optional().describe('File that holds the URL, instead of `sessions.redisUrl`.'),
  redisCluster: redisCluster.optional().meta({
    description:
      'Instead of one Redis: a Redis Cluster, by some of its nodes: `redis://user:password@host:port,host:port`, or `rediss://` for TLS.',
    plainEnv: 'REDIS_CLUSTER',
  }),
  redisClusterFile: filePath.optional().describe('File that holds it, instead of `sessions.redisCluster`.'),
  redisSentinels: redisSentinels.optional().meta({
    description:
      'Instead of one Redis: the master that sentinels name: `redis://user:password@host:port,host:port/database`, or `rediss://` for TLS. Hosts are those of the sentinels; user, password and database those of the master.',
    plainEnv: 'REDIS_SENTINELS',
  }),
  redisSentinelsFile: filePath.optional().describe('File that holds it, instead of `sessions.redisSentinels`.'),
  redisSentinelMaster: z
    .string()
    .regex(/^[\w.-]{1,255}$/, 'must be a name of letters, digits, ., - and _')
    .optional()
    .meta({
      description: 'Name by which the sentinels know the master.',
      defaultText: 'required with `sessions.redisSentinels`',
      plainEnv: 'REDIS_SENTINEL_MASTER',
    }),
  redisSentinelPassword: password.optional().meta({
    description: 'Password of the sentinels themselves, if they ask for one.',
    plainEnv: 'REDIS_SENTINEL_PASSWORD',
  }),
  redisSentinelPasswordFile: filePath
    .optional()
    .describe('File that holds it, instead of `sessions.redisSentinelPassword`.'),
  redisTls: redisTls.optional(),
}
