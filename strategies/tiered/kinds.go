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

const useCount = 4

// schemaUses have the names of the record's CREATE TABLE and of its table of
// hash fields.
var schemaUses = [useCount]use{
	{0, "api_requests", "requests", "api_requests", "api_requests_max", "api_requests_used", "api_requests_limit"},
	{1, "tokens", "tokens", "tokens_used", "tokens_max", "tokens_used", "tokens_limit"},
	{2, "sandboxes", "sandboxes", "sandboxes_active", "sandboxes_max", "sandboxes_active", "sandboxes_limit"},
	{3, "storage", "bytes", "storage_bytes", "storage_max", "storage_bytes", "storage_limit"},
}

// literalUses have the names that the record's listings make of a type's name.
// The stems are those that fit the columns and fields of limits, which all four
// types have; so what is wrong is the counts.
var literalUses = literal(schemaUses)

func literal(uses [useCount]use) [useCount]use {
	for i := range uses {
		use := &uses[i]
		use.field = use.name
		use.limitField = use.name + "_max"
		use.usedColumn = use.name + "_used"
		use.limitColumn = use.name + "_limit"
	}
	return uses
}

// useOf finds the kind of use that a policy's unit stands for.
func useOf(uses *[useCount]use, policy *quota.Policy) (*use, error) {
	for i := range uses {
		if uses[i].unit == policy.Unit {
			return &uses[i], nil
		}
	}
	units := make([]string, len(uses))
	for i, use := range uses {
		units[i] = use.unit
	}
	return nil, fmt.Errorf("policy %s counts %s; ADR-005's tables have columns for %s only", policy.Name, policy.Unit,
		strings.Join(units, ", "))
}

func serves(policy *quota.Policy) error {
	_, err := useOf(&schemaUses, policy)
	return err
}

// real is the same kind of use by the names that exist: what an operator, who
// looks at the table, goes by.
func (u *use) real() *use { return &schemaUses[u.index] }

// misnamed reports whether the table has no such column of counts.
func (u *use) misnamed() bool { return u.usedColumn != u.real().usedColumn }

// sql fills the columns of this kind of use into a statement.
func (u *use) sql(statement string) string {
	return strings.NewReplacer("{used}", u.usedColumn, "{limit}", u.limitColumn).Replace(statement)
}
