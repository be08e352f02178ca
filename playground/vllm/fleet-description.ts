import { z } from 'zod'

/** Where a running fleet is met: JSON in a file, for tests, benchmarks and people. */
export const fleetDescriptionSchema = z.object({
  /** Pods in the order of their numbers. */
  pods: z.array(
    z.object({
      /** Of vLLM, as the gateway's `PODS` wants it: `127.0.0.1:8101`. */
      address: z.string(),
      url: z.string(),
      /** The pod's name at the coordinator: `pod-0`. */
      lmcacheInstance: z.string(),
    }),
  ),
  coordinatorUrl: z.string(),
  /** The folder of the store that all LMCache servers share: one file per chunk. */
  l2Directory: z.string(),
  /** The model's path as vLLM was given it, which is its name at LMCache. */
  modelPath: z.string(),
  /** The model's name in requests to vLLM. */
  servedModelName: z.string(),
  /** Tokens per chunk of LMCache and per block of vLLM. */
  chunkTokens: z.number(),
  /** A Unix socket that accepts commands for single servers: `serveFleetControl`. */
  controlSocket: z.string(),
  /** What each server prints is written into files here. */
  logFolder: z.string(),
})

export type FleetDescription = z.infer<typeof fleetDescriptionSchema>
export type PodDescription = FleetDescription['pods'][number]

/** The environment of a gateway in front of the fleet. */
export const gatewayEnvironment = ({ pods, coordinatorUrl }: FleetDescription) => ({
  PODS: pods.map(({ address }) => address).join(','),
  CONNECTOR: 'lmcache',
  LMCACHE_URL: coordinatorUrl,
  LMCACHE_INSTANCES: pods.map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`).join(','),
})
