import { createGrpcJsServer } from '../../../src/extproc/grpc-js/grpc-js-server.ts'
import { describeRpcTransport } from './transport-suite.ts'

describeRpcTransport('grpc-js', createGrpcJsServer)
