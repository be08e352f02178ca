import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { closeAtOnce, listenLocally } from './local-server.ts'

/** An object store in memory: PUT, GET and DELETE. */
export interface ObjectServer {
  /** Without a slash at its end. */
  readonly url: string
  readonly objects: Map<string, Buffer>
  /** Answers like this instead, until it is set to undefined. */
  failWith(status: number | undefined): void
  close(): Promise<void>
}

export const startObjectServer = async (): Promise<ObjectServer> => {
  const objects = new Map<string, Buffer>()
  let failure: number | undefined
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? '/', 'http://any').pathname.slice('/kv/'.length))
    let body: Buffer
    try {
      body = await buffer(request)
    } catch {
      // The body broke off: nothing is kept.
      return
    }
    if (failure !== undefined) return response.writeHead(failure).end('no')
    switch (request.method) {
      case 'PUT':
        objects.set(name, body)
        return response.writeHead(201).end()
      case 'DELETE':
        return response.writeHead(objects.delete(name) ? 204 : 404).end()
      default: {
        const object = objects.get(name)
        return object === undefined ? response.writeHead(404).end('no such object') : response.end(object)
      }
    }
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}/kv`,
    objects,
    failWith: (status) => {
      failure = status
    },
    close: () => closeAtOnce(server),
  }
}
