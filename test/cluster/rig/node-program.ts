import { dirname } from 'node:path'

/** Node.js in a container. It is mounted, since the folder of this checkout may be closed to the container's user. */
export const nodeProgram = '/opt/node/node'

/** What a container with `nodeProgram` mounts for it. */
export const nodeMount = { '/opt/node': dirname(process.execPath) } as const
