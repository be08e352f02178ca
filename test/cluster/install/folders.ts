import { join } from 'node:path'
import { toolsDir } from '../../../playground/paths.ts'

/** `$XDG_CACHE_HOME/context-cache-gateway/cluster`: what `make test-cluster` builds, one folder for each program. */
export const clusterToolsDir = (): string => join(toolsDir(), 'cluster')

export const folderOf = ({ name, version }: { readonly name: string; readonly version: string }): string =>
  join(clusterToolsDir(), `${name}-${version}`)
