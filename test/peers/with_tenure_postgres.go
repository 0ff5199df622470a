package main

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

func tenureOnPostgres(at place) (client, error) {
	config, err := pgx.ParseConfig("postgres://postgres@" + at.Address() + "/postgres")
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(2)
	s, err := pgxstore.New(db, config, sqlstore.WithTable(at.Bucket))
	return withTenure(at, s, err)
}
