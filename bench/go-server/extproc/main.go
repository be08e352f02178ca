// The smallest external processor that a Go programmer would write: grpc-go and the generated messages. It answers every phase that
// Envoy sends, and changes one request header. It is what the gateway is measured against.
package main

import (
	"errors"
	"flag"
	"io"
	"log"
	"net"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A request body of 100 KB and more has to fit into one message.
const maxMessageBytes = 16 << 20

type processor struct {
	extproc.UnimplementedExternalProcessorServer
}

func (processor) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled {
			return nil
		}
		if err != nil {
			return err
		}
		response := answer(request)
		if response == nil {
			return status.Error(codes.InvalidArgument, "a phase that was not asked for")
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func answer(request *extproc.ProcessingRequest) *extproc.ProcessingResponse {
	switch request.Request.(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{HeaderMutation: mark()}},
		}}
	case *extproc.ProcessingRequest_RequestBody:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{
			RequestBody: &extproc.BodyResponse{},
		}}
	case *extproc.ProcessingRequest_ResponseHeaders:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &extproc.HeadersResponse{},
		}}
	default:
		return nil
	}
}

func mark() *extproc.HeaderMutation {
	return &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{{
		Header:       &core.HeaderValue{Key: "x-bench-mark", RawValue: []byte("1")},
		AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:50051", "address for Envoy")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes))
	extproc.RegisterExternalProcessorServer(server, processor{})
	log.Print("listening")
	log.Fatal(server.Serve(listener))
}
