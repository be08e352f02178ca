/** What the hosts of the URL are. */
export type RedisTopology =
  /** One server; a URL with one host. */
  | { readonly kind: 'server' }
  /** Nodes of a Redis Cluster, any of them: the client learns the others from them. */
  | { readonly kind: 'cluster' }
  /** Sentinels, which tell which server is the master now. User, password and database are those of that server. */
  | {
      readonly kind: 'sentinels'
      /** The name by which the sentinels know the master. */
      readonly master: string
      /** Of the sentinels themselves. Default: none. */
      readonly sentinelPassword?: string | undefined
    }

/** PEM files for connections with TLS. They are read again for every new connection. */
export interface RedisTlsFiles {
  /** The authorities that sign the certificates of the servers. Default: those that Node.js knows. */
  readonly ca?: string | undefined
  /** What the client shows, and its private key: both or none. */
  readonly certificate?: string | undefined
  readonly key?: string | undefined
}

/** Where Redis is, and how to get in. */
export interface RedisLocation {
  /** `redis://` or, with TLS, `rediss://user:password@host:port,host:port/database`. */
  readonly url: string
  /** Default: one server. */
  readonly topology?: RedisTopology | undefined
  readonly tls?: RedisTlsFiles | undefined
}
