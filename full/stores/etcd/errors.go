package etcd

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/quota"
)

// errorKind is [stores.Driver.ErrorKind].
func errorKind(err error) quota.ErrorKind {
	var code codes.Code
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		code = said.Code()
	} else if s, ok := status.FromError(err); ok {
		code = s.Code()
	}
	if errors.Is(err, rpctypes.ErrTimeout) {
		return quota.ErrorTimeout
	}
	return grpcstore.ErrorKind(code)
}
