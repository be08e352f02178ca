import { parse } from 'yaml'
import { z } from 'zod'

const route = z.looseObject({ match: z.looseObject({ path: z.string().optional() }) })
const routeConfig = z.object({ virtual_hosts: z.tuple([z.object({ routes: z.array(route) })]) })
const clients = z.object({
  filter_chains: z.tuple([
    z.object({ filters: z.tuple([z.object({ typed_config: z.object({ route_config: routeConfig }) })]) }),
  ]),
})
const envoyConfig = z.object({ static_resources: z.object({ listeners: z.tuple([clients], z.unknown()) }) })

/** The routes of an envoy.yaml. */
export const routesIn = (text: string) =>
  envoyConfig.parse(parse(text, { merge: true })).static_resources.listeners[0].filter_chains[0].filters[0].typed_config
    .route_config.virtual_hosts[0].routes

/** The route of `/v1/responses`, and its place among the others. */
export const keptRouteIn = (text: string) => {
  const at = routesIn(text).findIndex(({ match }) => match.path === '/v1/responses')
  return at === -1 ? undefined : { at, ...routesIn(text)[at] }
}
