package tiered

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

// use is one of the kinds of use that the record's tables and hashes have.
type use struct {
	index int
	// name is what the record calls a quota type, and check_quota's argument.
	name string
	// unit of the policies it serves.
	unit string
	// field of the hash of counts, limitField of the hash of limits.
	field, limitField string
	// usedColumn and limitColumn of the table.
	usedColumn, limitColumn string
}

var uses = [...]use{
	{0, "api_requests", "requests", "api_requests", "api_requests_max", "api_requests_used", "api_requests_limit"},
	{1, "tokens", "tokens", "tokens_used", "tokens_max", "tokens_used", "tokens_limit"},
	{2, "sandboxes", "sandboxes", "sandboxes_active", "sandboxes_max", "sandboxes_active", "sandboxes_limit"},
	{3, "storage", "bytes", "storage_bytes", "storage_max", "storage_bytes", "storage_limit"},
}

// useOf finds the kind of use that a policy's unit stands for.
func useOf(p *quota.Policy) (*use, error) {
	for i := range uses {
		if uses[i].unit == p.Unit {
			return &uses[i], nil
		}
	}
	units := make([]string, len(uses))
	for i, u := range uses {
		units[i] = u.unit
	}
	return nil, fmt.Errorf("policy %s counts %s; record 003's tables have columns for %s only", p.Name, p.Unit, strings.Join(units, ", "))
}

func serves(p *quota.Policy) error {
	_, err := useOf(p)
	return err
}

// sql fills the columns of this kind of use into a statement.
func (u *use) sql(statement string) string {
	return strings.NewReplacer("{used}", u.usedColumn, "{limit}", u.limitColumn).Replace(statement)
}
